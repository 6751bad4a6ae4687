//! The order of elements that kernels fill fragments in, and what a device was found to do beside it; it runs nothing.

use nx_vulkan_abi::DType;

/// Invocations that hold a matrix together.
pub(super) const LANES: u32 = 32;
/// Elements that a lane has of any of the matrices.
pub(super) const MOST: u32 = 16;
/// Words that `order.comp` writes: how many elements a lane holds, and the places of them.
pub(super) const WORDS: usize = (3 * LANES * (1 + MOST)) as usize;

/// A product of matrices that kernels fill themselves: 16 x 16 x `depth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) element: DType,
    pub(super) sum: DType,
    pub(super) depth: u32,
}

const fn product(element: DType, sum: DType, depth: u32) -> Product {
    Product {
        element,
        sum,
        depth,
    }
}

/// What kernels of packs multiply.
pub(super) const PRODUCTS: [Product; 4] = [
    product(DType::F16, DType::F32, 16),
    product(DType::BF16, DType::F32, 16),
    product(DType::S8, DType::S32, 32),
    product(DType::U8, DType::U32, 32),
];

/// What a lane may hold elements of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matrix {
    A,
    B,
    Sums,
}

/// Row and column of element `index` that `lane` holds, as `docs/abi.md` has it.
fn place(matrix: Matrix, product: Product, lane: u32, index: u32) -> [u32; 2] {
    // Neighbours along k fill words of 32 bits; sums come in pairs.
    let of_word = match matrix {
        Matrix::Sums => 2,
        Matrix::A | Matrix::B => product.depth / 8,
    };
    let (group, member) = (lane / 4, lane % 4);
    let (word, rest) = (index / of_word, index % of_word);
    let across = group + 8 * (word / 2);
    let along = of_word * (member + 4 * (word % 2)) + rest;
    match matrix {
        Matrix::A | Matrix::Sums => [across, along],
        Matrix::B => [along, across],
    }
}

/// Compares what `order.comp` has written with the order that kernels rely on; the difference where there is one.
pub(super) fn difference(product: Product, found: &[u32]) -> Option<String> {
    let element = product.element;
    let matrices = [
        (Matrix::A, "operand a", product.depth / 2),
        (Matrix::B, "operand b", product.depth / 2),
        (Matrix::Sums, "sums", 8),
    ];
    let lanes = found.chunks((1 + MOST) as usize);
    if lanes.len() != 3 * LANES as usize {
        return Some(format!("{} words were found", found.len()));
    }
    let each = matrices
        .iter()
        .flat_map(|of| (0..LANES).map(move |lane| (of, lane)));
    for ((&(matrix, name, held), lane), words) in each.zip(lanes) {
        if words[0] != held {
            return Some(format!(
                "lane {lane} holds {} elements of {name} of {element}, not {held}",
                words[0]
            ));
        }
        for index in 0..held {
            let word = words[1 + index as usize];
            let (own, known) = (
                [word >> 16, word & 0xffff],
                place(matrix, product, lane, index),
            );
            if own != known {
                return Some(format!(
                    "element {index} that lane {lane} holds of {name} of {element} is at {own:?}, not at {known:?}"
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the shader writes where `lane` and `index` of each element are as told: the other way round than the table.
    fn written(product: Product, at: impl Fn(usize, [u32; 2]) -> [u32; 2]) -> Vec<u32> {
        let mut words = vec![0; WORDS];
        let k = product.depth;
        for (matrix, [rows, columns]) in [[16, k], [k, 16], [16, 16]].into_iter().enumerate() {
            for row in 0..rows {
                for column in 0..columns {
                    let [lane, index] = at(matrix, [row, column]);
                    let lane = (matrix as u32 * LANES + lane) * (1 + MOST);
                    words[lane as usize] = rows * columns / LANES;
                    words[(lane + 1 + index) as usize] = row << 16 | column;
                }
            }
        }
        words
    }

    /// As NVIDIA's own driver 580 orders them.
    fn known(product: Product) -> impl Fn(usize, [u32; 2]) -> [u32; 2] {
        move |matrix, [row, column]| {
            let (across, along) = if matrix == 1 {
                (column, row)
            } else {
                (row, column)
            };
            let pair = if matrix == 2 || product.depth == 16 {
                2
            } else {
                4
            };
            let lane = across % 8 * 4 + along / pair % 4;
            let index = across / 8 * 2 * pair + along / (4 * pair) * pair + along % pair;
            [lane, index]
        }
    }

    #[test]
    fn the_order_that_kernels_rely_on_is_found() {
        for product in PRODUCTS {
            assert_eq!(difference(product, &written(product, known(product))), None);
        }
    }

    #[test]
    fn any_other_order_is_told_by_its_first_difference() {
        for product in PRODUCTS {
            for matrix in 0..3 {
                // Registers as the assembler's manual numbers them: the lower rows before what is further on along k.
                let swapped = |own, place: [u32; 2]| {
                    let [lane, index] = known(product)(own, place);
                    let pair = if own == 2 || product.depth == 16 {
                        2
                    } else {
                        4
                    };
                    let word = [0, 2, 1, 3][(index / pair) as usize];
                    [
                        lane,
                        if own == matrix {
                            word * pair + index % pair
                        } else {
                            index
                        },
                    ]
                };
                let why = difference(product, &written(product, swapped)).unwrap();
                let name = ["operand a", "operand b", "sums"][matrix];
                assert!(why.contains(name) && why.contains("lane 0"), "{why}");
                // Two lanes that change places.
                let crossed = |own, place: [u32; 2]| {
                    let [lane, index] = known(product)(own, place);
                    [if own == matrix { lane ^ 1 } else { lane }, index]
                };
                let why = difference(product, &written(product, crossed)).unwrap();
                assert!(why.contains(name), "{why}");
            }
        }
    }

    #[test]
    fn one_word_that_differs_is_enough() {
        let product = PRODUCTS[0];
        let good = written(product, known(product));
        let used = |at: usize| at % (1 + MOST as usize) <= 8;
        for at in (0..WORDS).filter(|at| used(*at)) {
            let mut words = good.clone();
            words[at] ^= 1;
            assert!(difference(product, &words).is_some(), "word {at}");
        }
        assert!(difference(product, &good[1..]).is_some());
        assert!(difference(product, &[]).is_some());
    }
}
