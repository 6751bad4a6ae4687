//! Numbers of one type as those of another, where they lie.

use super::lane::wide;
use super::typed::t;
use super::widest;
use nx_vulkan_abi::DType;

/// The elements in the bytes of others.
pub(crate) type Cast = fn(&[u8], &mut [u8]);

/// What makes elements of `to` of numbers of `from`, floats of 16 bits as f32; nothing where they are of that type.
pub(in crate::kernels) fn cast(from: DType, to: DType) -> Option<Cast> {
    find(wide(from), to).filter(|_| from != to)
}

fn copy(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

macro_rules! dtype {
    (u8) => {
        DType::U8
    };
    (s8) => {
        DType::S8
    };
    (u16) => {
        DType::U16
    };
    (s16) => {
        DType::S16
    };
    (u32) => {
        DType::U32
    };
    (s32) => {
        DType::S32
    };
    (u64) => {
        DType::U64
    };
    (s64) => {
        DType::S64
    };
    (f32) => {
        DType::F32
    };
    (f64) => {
        DType::F64
    };
}

/// Loops of the types on the left to those in the list, by a function of the names' types.
macro_rules! casts {
    ($($module:ident: $from:ident [$($to:ident)*];)*) => {
        /// The cast between those types, where there is one here.
        pub(super) fn find(from: DType, to: DType) -> Option<Cast> {
            Some(match (from, to) {
                (DType::F32, DType::F32) | (DType::F64, DType::F64) => copy,
                $($( (dtype!($from), dtype!($to)) => $module::$to, )*)*
                _ => return None,
            })
        }

        $( mod $module {
            use super::*;
            widest! { $(
                pub(super) fn $to(from: &[u8], to: &mut [u8]) {
                    type From = t::$from;
                    type To = t::$to;
                    let from = from.as_chunks::<{ size_of::<From>() }>().0;
                    let to = to.as_chunks_mut::<{ size_of::<To>() }>().0;
                    for (to, x) in to.iter_mut().zip(from) {
                        *to = <To as Takes<From>>::take(From::from_ne_bytes(*x)).to_ne_bytes();
                    }
                }
            )* }
        } )*
    };
}
casts! {
    u8_to: u8 [s8 u16 s16 u32 s32 u64 s64 f32 f64];
    s8_to: s8 [u8 u16 s16 u32 s32 u64 s64 f32 f64];
    u16_to: u16 [u8 s8 s16 u32 s32 u64 s64 f32 f64];
    s16_to: s16 [u8 s8 u16 u32 s32 u64 s64 f32 f64];
    u32_to: u32 [u8 s8 u16 s16 s32 u64 s64 f32 f64];
    s32_to: s32 [u8 s8 u16 s16 u32 u64 s64 f32 f64];
    u64_to: u64 [u8 s8 u16 s16 u32 s32 s64 f32 f64];
    s64_to: s64 [u8 s8 u16 s16 u32 s32 u64 f32 f64];
    f32_to: f32 [u8 s8 u16 s16 u32 s32 u64 s64 f64];
    f64_to: f64 [u8 s8 u16 s16 u32 s32 u64 s64 f32];
}

/// What a number of another type is in this one: integers wrap, floats are truncated and saturate.
trait Takes<From> {
    fn take(x: From) -> Self;
}

macro_rules! takes {
    ($($to:ty: $($from:ty)*;)*) => { $($(
        impl Takes<$from> for $to {
            #[inline(always)]
            fn take(x: $from) -> $to {
                x as $to
            }
        }
    )*)* };
}
takes! {
    u8: u8 i8 u16 i16 u32 i32 u64 i64;
    i8: u8 i8 u16 i16 u32 i32 u64 i64;
    u16: u8 i8 u16 i16 u32 i32 u64 i64;
    i16: u8 i8 u16 i16 u32 i32 u64 i64;
    u32: u8 i8 u16 i16 u32 i32 u64 i64;
    i32: u8 i8 u16 i16 u32 i32 u64 i64;
    u64: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64;
    i64: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64;
    f32: u8 i8 u16 i16 u32 i32 u64 i64 f64;
    f64: u8 i8 u16 i16 u32 i32 u64 i64 f32;
}

/// The same in steps that vectors have, by way of integers of 32 bits.
macro_rules! saturates {
    ($($to:ty: $from:ty as $through:ty;)*) => { $(
        impl Takes<$from> for $to {
            #[inline(always)]
            fn take(x: $from) -> $to {
                const LOW: $from = <$to>::MIN as $from;
                const END: $from = (<$to>::MAX as u64 + 1) as $from;
                let within = x.max(LOW).min(END.next_down());
                // SAFETY: from the lowest integer to the largest float below the highest and one; `max` is no NaN.
                let whole = unsafe { within.to_int_unchecked::<$through>() } as $to;
                let whole = if x >= END { <$to>::MAX } else { whole };
                if x.is_nan() { 0 } else { whole }
            }
        }
    )* };
}
saturates! {
    u8: f32 as i32;
    i8: f32 as i32;
    u16: f32 as i32;
    i16: f32 as i32;
    u32: f32 as u32;
    i32: f32 as i32;
    u8: f64 as i32;
    i8: f64 as i32;
    u16: f64 as i32;
    i16: f64 as i32;
    u32: f64 as u32;
    i32: f64 as i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_casts_of_four_bytes_but_copies_of_integers_have_loops() {
        let types = [DType::F32, DType::S32, DType::U32];
        let pairs = types.iter().flat_map(|from| types.map(|to| (*from, to)));
        assert_eq!(
            pairs
                .filter(|(from, to)| find(*from, *to).is_some())
                .count(),
            7
        );
    }
}
