//! Operands read as words: how many elements a load of 16, 8 or 4 bytes brings, and how shaders take them out of it.

use crate::{operand::Operand, steps::number};
use nx_vulkan_abi::{DType, Define, dtype::Class, glsl};

/// What one load of an operand brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    /// Words of it; 0 for one element in its own type.
    pub(crate) words: u32,
    /// Elements of it, along the operand's fast axis.
    pub(crate) elements: u32,
}

impl Load {
    /// One element at a time.
    pub(crate) const SINGLE: Load = Load {
        words: 0,
        elements: 1,
    };

    /// The largest load of at most `most` elements, all of whose packs are whole and aligned.
    pub(crate) fn largest(operand: &Operand, most: u32) -> Load {
        let size = operand.dtype.size() as u32;
        let loads = [4, 2, 1].map(|words| Load {
            words,
            elements: words * 4 / size,
        });
        loads
            .into_iter()
            .filter(|load| load.elements * size == load.words * 4)
            .find(|load| load.elements <= most && operand.is_wide(load.elements))
            .unwrap_or(Load::SINGLE)
    }

    /// `{name}_WORDS`, `{name}_ELEMENTS`, `{name}_WORD_PACK`, the type of the words, and `{name}_ELEMENT(w, i)`: element `i`
    /// of the words `w`, in the result's registers.
    pub(crate) fn defines(self, name: &str, from: DType, to: DType) -> Vec<Define> {
        let pack = match self.words {
            4 => "uvec4",
            2 => "uvec2",
            _ => "uint",
        };
        let element = self.element(name, from, to);
        vec![
            number(&format!("{name}_WORDS"), self.words),
            number(&format!("{name}_ELEMENTS"), self.elements),
            glsl::define(format!("{name}_WORD_PACK"), pack),
            glsl::define(format!("{name}_ELEMENT(w, i)"), element),
        ]
    }

    fn element(self, name: &str, from: DType, to: DType) -> String {
        let word = |at: &str| match self.words {
            0 | 1 => "(w)".to_owned(),
            _ => format!("(w)[{at}]"),
        };
        let pair = |first: u32| {
            let at = |half: u32| word(&format!("2 * (i) + {}", first + half));
            format!("uvec2({}, {})", at(0), at(1))
        };
        let half = format!("({} >> ((i) % 2 * 16) & 0xffffu)", word("(i) / 2"));
        let byte = format!("({} >> ((i) % 4 * 8) & 0xffu)", word("(i) / 4"));
        let to_f32 = to.register() == DType::F32;
        let faster = match from {
            DType::F16 => Some(format!("from_f16({half})")),
            DType::U8 => Some(format!("from_byte({byte}, 0.0)")),
            DType::S8 => Some(format!("from_byte({byte} ^ 0x80u, 128.0)")),
            _ => None,
        };
        if let Some(faster) = faster.filter(|_| to_f32) {
            return faster;
        }
        let stored = match (from.class(), from.size()) {
            (Some(Class::Float), 4) => format!("uintBitsToFloat({})", word("i")),
            (Some(Class::Float), 8) => format!("packDouble2x32({})", pair(0)),
            (Some(Class::Complex), 8) => format!("uintBitsToFloat({})", pair(0)),
            (Some(Class::Complex), _) => {
                let parts = [0, 2].map(|first| format!("packDouble2x32({})", pair(first)));
                format!("dvec2({})", parts.join(", "))
            }
            (_, 8) => format!("{name}_STORAGE(packUint2x32({}))", pair(0)),
            (_, 4) => format!("{name}_STORAGE({})", word("i")),
            (_, 2) => format!("{name}_STORAGE({half})"),
            _ => format!("{name}_STORAGE({byte})"),
        };
        format!("{name}_GET({stored})")
    }
}
