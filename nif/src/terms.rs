//! Elixir terms as the host's values: types, shapes, attributes.

use crate::misfit::misfit;
use nx_vulkan_abi::DType;
use nx_vulkan_host::{Attr, AttrValue, Spec};
use rustler::{
    Atom, Binary, Decoder, Encoder, Env, Error, ListIterator, NifResult, Term, sys::enif_get_tuple,
    types::tuple,
};
use smallvec::SmallVec;
use std::{ffi::c_int, ptr::null, sync::LazyLock};

mod atoms {
    rustler::atoms! { u, s, f, bf, c, f8_e4m3fn }
}

/// An Nx type: `{:f, 32}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeTerm(pub(crate) DType);

impl<'a> Decoder<'a> for TypeTerm {
    fn decode(term: Term<'a>) -> NifResult<TypeTerm> {
        let [kind, bits] = elements(term)?;
        let (kind, bits): (Atom, u32) = (kind.decode()?, bits.decode()?);
        TYPES
            .iter()
            .find(|row| row.0 == kind && row.1 == bits)
            .map(|row| TypeTerm(row.2))
            .ok_or(Error::BadArg)
    }
}

impl Encoder for TypeTerm {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        match TYPES.iter().find(|row| row.2 == self.0) {
            Some(row) => (row.0, row.1).encode(env),
            None => rustler::types::atom::nil().encode(env),
        }
    }
}

/// The rows, those first that are most common.
static TYPES: LazyLock<[(Atom, u32, DType); 20]> = LazyLock::new(|| {
    [
        (atoms::f(), 32, DType::F32),
        (atoms::s(), 32, DType::S32),
        (atoms::u(), 8, DType::U8),
        (atoms::f(), 64, DType::F64),
        (atoms::s(), 64, DType::S64),
        (atoms::u(), 32, DType::U32),
        (atoms::u(), 64, DType::U64),
        (atoms::bf(), 16, DType::BF16),
        (atoms::f(), 16, DType::F16),
        (atoms::u(), 16, DType::U16),
        (atoms::s(), 8, DType::S8),
        (atoms::s(), 16, DType::S16),
        (atoms::c(), 64, DType::C64),
        (atoms::c(), 128, DType::C128),
        (atoms::f(), 8, DType::F8),
        (atoms::f8_e4m3fn(), 8, DType::F8_E4M3FN),
        (atoms::u(), 2, DType::U2),
        (atoms::u(), 4, DType::U4),
        (atoms::s(), 2, DType::S2),
        (atoms::s(), 4, DType::S4),
    ]
});

/// A shape: `{2, 3}`.
#[derive(Debug, Clone)]
pub(crate) struct ShapeTerm(pub(crate) Vec<u64>);

impl<'a> Decoder<'a> for ShapeTerm {
    fn decode(term: Term<'a>) -> NifResult<ShapeTerm> {
        let extents = tuple_of(term)?.map(|extent| extent.decode());
        let extents: NifResult<_> = extents.collect();
        let unfit = |_| misfit(term, "a shape of extents below 2^64");
        Ok(ShapeTerm(extents.map_err(unfit)?))
    }
}

impl Encoder for ShapeTerm {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        let extents: Vec<Term> = self.0.iter().map(|extent| extent.encode(env)).collect();
        tuple::make_tuple(env, &extents)
    }
}

/// A type and a shape: `{{:f, 32}, {2, 3}}`.
#[derive(Debug, Clone)]
pub(crate) struct SpecTerm(pub(crate) Spec);

impl<'a> Decoder<'a> for SpecTerm {
    fn decode(term: Term<'a>) -> NifResult<SpecTerm> {
        let [dtype, shape] = elements(term)?;
        let (TypeTerm(dtype), ShapeTerm(shape)) = (dtype.decode()?, shape.decode()?);
        Ok(SpecTerm((dtype, shape)))
    }
}

/// A list of types and shapes; that of one result needs no memory of its own.
#[derive(Debug)]
pub(crate) struct SpecsTerm(pub(crate) SmallVec<[Spec; 1]>);

impl<'a> Decoder<'a> for SpecsTerm {
    fn decode(term: Term<'a>) -> NifResult<SpecsTerm> {
        // The iterator panics where a list is improper.
        term.list_length()?;
        let specs = term.decode::<ListIterator>()?;
        let specs = specs.map(|spec| spec.decode().map(|SpecTerm(spec)| spec));
        Ok(SpecsTerm(specs.collect::<NifResult<_>>()?))
    }
}

/// The elements of a tuple of `N`.
pub(crate) fn elements<'a, const N: usize>(term: Term<'a>) -> NifResult<[Term<'a>; N]> {
    let mut all = tuple_of(term)?;
    if all.len() != N {
        return Err(Error::BadArg);
    }
    Ok(std::array::from_fn(|_| all.next().unwrap_or(term)))
}

/// The elements of a tuple. rustler's own decoding allocates for each.
fn tuple_of<'a>(term: Term<'a>) -> NifResult<impl ExactSizeIterator<Item = Term<'a>>> {
    let env = term.get_env();
    let (mut count, mut first) = (0 as c_int, null());
    // SAFETY: term and env belong together. The elements, as many as the VM says, live as long as the env.
    let elements = unsafe {
        if enif_get_tuple(env.as_c_arg(), term.as_c_arg(), &mut count, &mut first) == 0 {
            return Err(Error::BadArg);
        }
        match count {
            0 => &[],
            _ => std::slice::from_raw_parts(first, count as usize),
        }
    };
    // SAFETY: they are terms of that env.
    Ok(elements
        .iter()
        .map(move |&element| unsafe { Term::new(env, element) }))
}

/// A list. rustler's own decoding of one panics where it is improper.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'a, T: Decoder<'a>> Decoder<'a> for List<T> {
    fn decode(term: Term<'a>) -> NifResult<List<T>> {
        term.list_length()?;
        term.decode().map(List)
    }
}

impl<T: Encoder> Encoder for List<T> {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        self.0.encode(env)
    }
}

impl<T: From<U>, U> From<Vec<U>> for List<T> {
    fn from(values: Vec<U>) -> List<T> {
        List(values.into_iter().map(T::from).collect())
    }
}

/// The attributes of an op: a keyword list, sorted by name here.
#[derive(Debug)]
pub(crate) struct AttrsTerm(pub(crate) Vec<Attr>);

impl<'a> Decoder<'a> for AttrsTerm {
    fn decode(term: Term<'a>) -> NifResult<AttrsTerm> {
        let pairs: List<(Atom, Term)> = term.decode()?;
        let attrs: NifResult<Vec<Attr>> = pairs
            .0
            .into_iter()
            .map(|(name, value)| {
                let name = name.to_term(value.get_env()).atom_to_string()?;
                Ok(Attr {
                    name,
                    value: attr_value(value)?,
                })
            })
            .collect();
        let mut attrs = attrs?;
        attrs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(AttrsTerm(attrs))
    }
}

fn attr_value(term: Term) -> NifResult<AttrValue> {
    if let Ok(List(ints)) = term.decode() {
        Ok(AttrValue::Ints(ints))
    } else if let Ok(int) = term.decode::<i64>() {
        Ok(AttrValue::Ints(vec![int]))
    } else if let Ok(List(floats)) = term.decode() {
        Ok(AttrValue::Floats(floats))
    } else if let Ok(float) = term.decode::<f64>() {
        Ok(AttrValue::Floats(vec![float]))
    } else if let Ok(text) = term.decode::<&str>() {
        Ok(AttrValue::Text(text.to_owned()))
    } else if term.is_atom() {
        Ok(AttrValue::Text(term.atom_to_string()?))
    } else {
        Err(misfit(
            term,
            "integers of 64 bits, floats or a word as an attribute",
        ))
    }
}

/// A host byte vector as an Elixir binary.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Encoder for Bytes {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        let mut binary = rustler::NewBinary::new(env, self.0.len());
        binary.as_mut_slice().copy_from_slice(&self.0);
        Binary::from(binary).to_term(env)
    }
}
