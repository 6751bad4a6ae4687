//! What results to come are made of: the ops that have not run yet, in an order in which they can, and the tensors that they read.

use super::{Lazy, Operand, State};
use crate::{Program, Request, Result, Spec, Tensor, Value, tensor::Laid as _};
use nx_vulkan_ops::{fusion::Input, op::Op};
use smallvec::SmallVec;
use std::sync::{Arc, atomic::Ordering};

/// A value of a graph: a tensor that is there, or what an op makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Leaf(usize),
    Node(usize),
}

/// A tensor that is there.
#[derive(Debug)]
struct Leaf {
    tensor: Arc<Tensor>,
    /// The bytes of its element, where it says how far to shift: then a result is never missing.
    element: Option<SmallVec<[u8; 16]>>,
}

/// An op that has not run.
#[derive(Debug)]
struct Node {
    lazy: Arc<Lazy>,
    op: &'static Op,
    operands: SmallVec<[Place; 2]>,
}

/// What some results are made of.
#[derive(Debug, Default)]
pub(super) struct Graph {
    leaves: SmallVec<[Leaf; 8]>,
    nodes: SmallVec<[Node; 8]>,
    /// Which nodes are asked for, or were computed before without being kept.
    wanted: SmallVec<[usize; 4]>,
}

impl Node {
    fn spec(&self) -> Spec {
        let layout = &self.lazy.layout;
        (layout.dtype(), layout.shape().to_vec())
    }
}

impl Graph {
    pub(super) fn of(lazies: &[Arc<Lazy>]) -> Graph {
        let mut graph = Graph::default();
        for lazy in lazies {
            graph.visit(lazy);
        }
        let is_wanted = |node: &Node| {
            let is_asked_for = lazies.iter().any(|lazy| Arc::ptr_eq(lazy, &node.lazy));
            is_asked_for || node.lazy.was_passed.load(Ordering::Relaxed)
        };
        let nodes = graph.nodes.iter().enumerate();
        let wanted = nodes.filter(|(_, node)| is_wanted(node));
        graph.wanted = wanted.map(|(index, _)| index).collect();
        graph
    }

    /// Its place, that of all that it is made of being known. The depth is that of what may wait together.
    fn visit(&mut self, lazy: &Arc<Lazy>) -> Place {
        let is_it = |node: &Node| Arc::ptr_eq(&node.lazy, lazy);
        if let Some(place) = self.nodes.iter().rposition(is_it) {
            return Place::Node(place);
        }
        let (op, operands) = match &*lazy.state.lock() {
            State::Made(tensor, _) => {
                let tensor = tensor.clone();
                return self.leaf(&tensor, None);
            }
            State::Owed(owed) => (owed.op, owed.operands.clone()),
        };
        // Other numbers stay operands: each text is a shader, and a number may be another one the next time.
        let shifts = matches!(op.name, "left_shift" | "right_shift");
        let places = operands.iter().enumerate();
        let places = places.map(|(index, operand)| match operand {
            Operand::Made(tensor, element) => {
                let element = element.clone().filter(|_| shifts && index == 1);
                self.leaf(tensor, element)
            }
            Operand::Lazy(lazy) => self.visit(lazy),
        });
        let operands = places.collect();
        let place = Place::Node(self.nodes.len());
        self.nodes.push(Node {
            lazy: lazy.clone(),
            op,
            operands,
        });
        place
    }

    fn leaf(&mut self, tensor: &Arc<Tensor>, element: Option<SmallVec<[u8; 16]>>) -> Place {
        let is_it = |leaf: &Leaf| Arc::ptr_eq(&leaf.tensor, tensor);
        let known = self.leaves.iter().position(is_it);
        let place = known.unwrap_or(self.leaves.len());
        match self.leaves.get_mut(place) {
            Some(leaf) => leaf.element = leaf.element.take().or(element),
            None => self.leaves.push(Leaf {
                tensor: tensor.clone(),
                element,
            }),
        }
        Place::Leaf(place)
    }

    /// How many ops have not run.
    pub(super) fn ops(&self) -> usize {
        self.nodes.len()
    }

    /// The only op of a graph, as a request of its leaves.
    pub(super) fn only<'t>(
        &self,
        leaves: &[&'t Tensor],
    ) -> Option<(&Lazy, Request<'t, &'t Tensor>)> {
        let [node] = &self.nodes[..] else {
            return None;
        };
        let operands = node.operands.iter().map(|place| match place {
            Place::Leaf(leaf) => leaves.get(*leaf).copied(),
            Place::Node(_) => None,
        });
        let operands: Vec<&Tensor> = operands.collect::<Option<_>>()?;
        let request = Request::new(node.op.name, operands, vec![node.spec()], &[]);
        Some((&node.lazy, request))
    }

    /// The inputs of its program.
    pub(super) fn leaves(&self) -> impl Iterator<Item = &Tensor> {
        self.leaves.iter().map(|leaf| &*leaf.tensor)
    }

    /// What the results of its program are.
    pub(super) fn results(&self) -> impl Iterator<Item = &Lazy> {
        self.wanted.iter().map(|&node| &*self.nodes[node].lazy)
    }

    /// What its program computes and does not keep.
    pub(super) fn passed(&self) -> impl Iterator<Item = &Lazy> {
        let nodes = self.nodes.iter().enumerate();
        let passed = nodes.filter(|(index, _)| self.wanted.binary_search(index).is_err());
        passed.map(|(_, node)| &*node.lazy)
    }

    fn value(&self, place: Place) -> Value {
        match place {
            Place::Leaf(leaf) => leaf as Value,
            Place::Node(node) => (self.leaves.len() + node) as Value,
        }
    }

    /// Its ops as a program.
    pub(super) fn program(&self) -> Result<Program<'static>> {
        let requests = self.nodes.iter().map(|node| {
            let operands = node.operands.iter().map(|&place| self.value(place));
            let outputs = vec![node.spec()];
            Request::new(node.op.name, operands.collect::<Vec<_>>(), outputs, &[])
        });
        let results = self.wanted.iter();
        let results = results.map(|&node| self.value(Place::Node(node)));
        Program::new(self.leaves.len(), requests, results)
    }

    /// What is known of the inputs of its program.
    pub(super) fn inputs(&self) -> Vec<Input> {
        let inputs = self.leaves.iter().map(|leaf| Input {
            spec: (leaf.tensor.dtype(), leaf.tensor.shape().to_vec()),
            element: leaf.element.as_ref().map(|element| element.to_vec()),
        });
        inputs.collect()
    }

    /// All that its program depends on, as bytes.
    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(32 * (self.leaves.len() + self.nodes.len()));
        let number = |key: &mut Vec<u8>, n: u64| key.extend_from_slice(&n.to_ne_bytes());
        number(&mut key, self.leaves.len() as u64);
        for leaf in &self.leaves {
            let shape = leaf.tensor.shape();
            key.push(leaf.tensor.dtype().0 as u8);
            number(&mut key, shape.len() as u64);
            shape.iter().for_each(|&n| number(&mut key, n));
            let element = leaf.element.as_deref();
            key.push(element.map_or(0, |element| element.len() as u8));
            key.extend_from_slice(element.unwrap_or_default());
        }
        for node in &self.nodes {
            let (dtype, shape) = (node.lazy.layout.dtype(), node.lazy.layout.shape());
            key.extend_from_slice(node.op.name.as_bytes());
            key.extend_from_slice(&[0xff, dtype.0 as u8, node.operands.len() as u8]);
            number(&mut key, shape.len() as u64);
            shape.iter().for_each(|&n| number(&mut key, n));
            let operands = node.operands.iter();
            operands.for_each(|&place| number(&mut key, self.value(place).into()));
        }
        let wanted = self.wanted.iter();
        wanted.for_each(|&node| number(&mut key, node as u64));
        key
    }
}
