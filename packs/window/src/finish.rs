//! What becomes of the sums of a convolution before they are stored: the kit's epilogues, with what finds the place in the result
//! that their operands belong to.

use nx_vulkan_abi::{DType, Define, Refusal, Request, glsl::define};
use nx_vulkan_pack_kit::{
    axes::divisor,
    epilogue::{self, Run},
    steps::{Step, bytes_of},
};

/// Words of push constants that an epilogue has at most, four for each of four operands: with those of a kernel they are what every
/// device takes.
const WORDS: usize = 16;

/// An epilogue. Of the result's axes its rows are that of the filters, its batches those in front of it, its columns those behind.
#[derive(Debug, Clone)]
pub(crate) struct Finish {
    own: epilogue::Finish,
    /// Elements of the result from one filter to the next, and from one index of the axes in front of them.
    steps: [u64; 2],
}

impl Finish {
    /// The epilogue of a request; `None` where it has none.
    ///
    /// # Errors
    /// Those of the kit's.
    pub(crate) fn of(request: &Request<'_>) -> Result<Option<Finish>, Refusal> {
        let shape = request.outputs[0].shape.as_slice();
        let filters = request.ints("output_permutation").get(1);
        let filters = filters.and_then(|axis| usize::try_from(*axis).ok());
        let axis = filters.filter(|axis| *axis < shape.len()).unwrap_or(0);
        let axes = [0..axis, axis..axis + 1, axis + 1..shape.len()].map(Vec::from_iter);
        let own = epilogue::Finish::of(request, &axes)?;
        let words = own.as_ref().map_or(0, |own| own.words().len());
        if words > WORDS {
            return Err(Refusal::decline(format!(
                "its epilogue has {words} words of push constants, and kernels take {WORDS}"
            )));
        }
        let step = |from: usize| shape.iter().skip(from).product::<u64>();
        Ok(own.map(|own| Finish {
            own,
            steps: [step(axis + 1), step(axis)],
        }))
    }

    /// The type of the sums.
    pub(crate) fn sum(&self) -> DType {
        self.own.types.sum
    }

    /// The type of the result.
    pub(crate) fn result(&self) -> DType {
        self.own.result
    }

    /// Whether so many sums are finished by a dispatch of their own.
    pub(crate) fn stands_apart(&self, sums: u64) -> bool {
        self.own.stands_apart(sums)
    }

    /// Has a step that knows place and filter of each sum finish them, a run at a time: operands are bound and pushed behind what
    /// is there.
    pub(crate) fn add_to(&self, run: Run, step: &mut Step) {
        let [filter, outer] = self.steps;
        let [magic, shift] = divisor(outer);
        let words = [
            vec![filter as u32, outer as u32, magic, shift],
            self.own.words(),
        ];
        step.defines
            .extend(self.own.defines(step.args.len() as u32, run));
        step.defines.push(self.own.still());
        step.args.extend(self.own.args());
        step.push.extend(bytes_of(&words.concat()));
    }
}

/// How a sum is stored: of part of the depth as it is, else as the result's type has it, or the epilogue makes it.
pub(crate) fn stored(finish: Option<&Finish>, is_partial: bool) -> [Define; 2] {
    let (result, store) = match (is_partial, finish) {
        (true, _) => ("T_VALUE", "(sum)"),
        (false, None) => ("T_STORAGE", "T_STORE(sum)"),
        (false, Some(_)) => (
            "R_STORAGE",
            "R_STORE(finished_at(sum, place, filter_index))",
        ),
    };
    [
        define("RESULT", result),
        define("TO_RESULT(sum, place, filter_index)", store),
    ]
}
