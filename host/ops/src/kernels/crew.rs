//! Threads of other cores that help with what is shared.
//!
//! Who shares never waits for a thread that has not begun: one that sleeps may take 50 us until it runs, on a virtual machine,
//! and there is a pause before most calls. A pool's scope waits for all that was spawned in it (rayon's cost 25 to 50 us a
//! call so, this 0 to 8).

use parking_lot::{Condvar, Mutex};
use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// How long a thread looks for work before it sleeps.
const LOOKS: Duration = Duration::from_micros(50);
/// What takes no longer than it takes to wake a thread.
const SHORT: Duration = Duration::from_micros(10);

/// Parts that may be done before another thread has begun.
const FEW: usize = 4;

/// A part of the work after the other, until none is left. It calls its argument between them.
pub(super) type Work<'a> = &'a (dyn Fn(&dyn Fn()) + Sync);

/// When those who sleep are woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wakes {
    /// At once.
    Now,
    /// After a part, once it has taken as long as that costs, where the parts are few.
    Late,
}

/// How many threads may share work, the caller's among them.
pub(super) fn cores() -> usize {
    LIMIT.get().unwrap_or_else(|| crew().members + 1)
}

/// What `work` gives where so many threads share what this one does, itself among them.
pub fn with_cores<T>(cores: usize, work: impl FnOnce() -> T) -> T {
    /// Also where the work panics, after which others may run on this thread.
    struct Former(Option<usize>);
    impl Drop for Former {
        fn drop(&mut self) {
            LIMIT.set(self.0);
        }
    }
    let _former = Former(LIMIT.replace(Some(cores)));
    work()
}

thread_local! {
    /// How many threads may share what this one does, where that is limited.
    static LIMIT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Calls `work` here and on other cores, on so many at most in all.
pub(super) fn share(most: usize, wakes: Wakes, work: Work<'_>) {
    let seats = most.min(cores()).saturating_sub(1);
    if seats == 0 {
        return work(&|| ());
    }
    let job = Job {
        // SAFETY: nobody calls it once `open` is dropped, which waits for those who are inside.
        work: unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(work) },
        inside: AtomicUsize::new(0),
        caller: thread::current(),
        panic: Mutex::new(None),
    };
    let open = Open::new(crew(), &job, seats);
    let start = Instant::now();
    let woken = Cell::new(wakes == Wakes::Now || most > FEW);
    if woken.get() {
        open.crew.wake();
    }
    work(&|| {
        if !woken.get() && start.elapsed() > SHORT {
            woken.set(true);
            open.crew.wake();
        }
    });
    drop(open);
    if let Some(panic) = job.panic.into_inner() {
        resume_unwind(panic);
    }
}

/// What is shared. It lies on its caller's stack.
struct Job {
    work: Work<'static>,
    /// Members that have begun and are not done.
    inside: AtomicUsize,
    caller: Thread,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

struct Crew {
    board: Mutex<Board>,
    come: Condvar,
    /// Jobs on the board, for those who look without the lock.
    open: AtomicUsize,
    members: usize,
}

#[derive(Default)]
struct Board {
    jobs: Vec<Posted>,
    asleep: usize,
}

/// A job that so many may still begin.
struct Posted {
    job: *const Job,
    seats: usize,
}

// SAFETY: a job is shared by reference, and stays on the board no longer than it lives.
unsafe impl Send for Posted {}

fn crew() -> &'static Crew {
    static CREW: OnceLock<Crew> = OnceLock::new();
    static MEMBERS: OnceLock<()> = OnceLock::new();
    let crew = CREW.get_or_init(|| Crew {
        board: Mutex::default(),
        come: Condvar::new(),
        open: AtomicUsize::new(0),
        members: thread::available_parallelism().map_or(1, usize::from) - 1,
    });
    MEMBERS.get_or_init(|| {
        for _ in 0..crew.members {
            let thread = thread::Builder::new().name("nx_vulkan host".to_owned());
            // Without it others do its part.
            drop(thread.spawn(|| crew.help()));
        }
    });
    crew
}

impl Crew {
    fn wake(&self) {
        if self.board.lock().asleep > 0 {
            self.come.notify_one();
        }
    }

    /// What a member does for ever.
    fn help(&self) -> ! {
        loop {
            let job = self.next();
            // SAFETY: this thread was counted as inside, and the caller waits for it.
            let job = unsafe { &*job };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (job.work)(&|| ()))) {
                *job.panic.lock() = Some(panic);
            }
            let caller = job.caller.clone();
            // The job may be gone after it.
            job.inside.fetch_sub(1, Ordering::Release);
            caller.unpark();
        }
    }

    fn next(&self) -> *const Job {
        let start = Instant::now();
        loop {
            if self.open.load(Ordering::Acquire) > 0
                && let Some(job) = self.take(&mut self.board.lock())
            {
                return job;
            }
            if start.elapsed() < LOOKS {
                thread::yield_now();
                continue;
            }
            let mut board = self.board.lock();
            loop {
                if let Some(job) = self.take(&mut board) {
                    return job;
                }
                board.asleep += 1;
                self.come.wait(&mut board);
                board.asleep -= 1;
            }
        }
    }

    /// Begins the job that came last. Whoever was woken wakes the next.
    fn take(&self, board: &mut Board) -> Option<*const Job> {
        let posted = board.jobs.last_mut()?;
        // SAFETY: what is on the board lives.
        unsafe { &*posted.job }
            .inside
            .fetch_add(1, Ordering::Relaxed);
        let job = posted.job;
        posted.seats -= 1;
        if posted.seats == 0 {
            board.jobs.pop();
            self.open.fetch_sub(1, Ordering::Release);
        }
        if !board.jobs.is_empty() && board.asleep > 0 {
            self.come.notify_one();
        }
        Some(job)
    }
}

/// A job on the board.
struct Open<'a> {
    crew: &'a Crew,
    job: &'a Job,
}

impl<'a> Open<'a> {
    fn new(crew: &'a Crew, job: &'a Job, seats: usize) -> Open<'a> {
        let mut board = crew.board.lock();
        board.jobs.push(Posted { job, seats });
        crew.open.fetch_add(1, Ordering::Release);
        Open { crew, job }
    }
}

impl Drop for Open<'_> {
    /// Takes it from the board and waits for those who have begun, also where the caller's part panicked.
    fn drop(&mut self) {
        let mut board = self.crew.board.lock();
        let place = board
            .jobs
            .iter()
            .position(|posted| std::ptr::eq(posted.job, self.job));
        if let Some(place) = place {
            board.jobs.remove(place);
            self.crew.open.fetch_sub(1, Ordering::Release);
        }
        drop(board);
        let start = Instant::now();
        while self.job.inside.load(Ordering::Acquire) > 0 {
            match start.elapsed() < LOOKS {
                true => std::hint::spin_loop(),
                false => thread::park(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls each of so many parts, and says how often each was called.
    fn run(parts: usize, wakes: Wakes, part: &(dyn Fn(usize) + Sync)) -> Vec<usize> {
        let calls: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
        let next = AtomicUsize::new(0);
        share(parts, wakes, &|between| {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(count) = calls.get(i) else { return };
                count.fetch_add(1, Ordering::Relaxed);
                part(i);
                between();
            }
        });
        calls.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn each_part_is_done_once_however_many_share_at_a_time() {
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for round in 0..2000 {
                        let wakes = [Wakes::Now, Wakes::Late][round % 2];
                        let inner = AtomicUsize::new(0);
                        let calls = run(round % 7 + thread, wakes, &|_| {
                            let calls = run(3, wakes, &|_| {});
                            inner.fetch_add(calls.iter().sum(), Ordering::Relaxed);
                        });
                        assert!(calls.iter().all(|count| *count == 1));
                        assert_eq!(inner.into_inner(), 3 * calls.len());
                    }
                });
            }
        });
    }

    #[test]
    fn a_limit_of_cores_ends_with_its_work() {
        let all = cores();
        let inner = with_cores(3, || {
            let inner = catch_unwind(|| with_cores(1, || panic!("at work with {}", cores())));
            (cores(), inner.is_err())
        });
        assert_eq!((inner, cores()), ((3, true), all));
    }

    #[test]
    fn long_parts_run_at_the_same_time() {
        if cores() < 2 {
            return;
        }
        // The other tests share the same threads, which may come late.
        let deadline = Instant::now() + Duration::from_secs(60);
        let at_once = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        run(8, Wakes::Late, &|_| {
            let now = at_once.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            while most.load(Ordering::SeqCst) < 2 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(2));
            at_once.fetch_sub(1, Ordering::SeqCst);
        });
        assert!((2..=cores()).contains(&most.into_inner()));
    }

    #[test]
    fn a_panic_of_any_part_reaches_the_caller_and_leaves_the_others_whole() {
        for bad in 0..6 {
            let done = AtomicUsize::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                run(6, Wakes::Now, &|i| {
                    thread::sleep(Duration::from_millis(1));
                    assert_ne!(i, bad, "part {i}");
                    done.fetch_add(1, Ordering::Relaxed);
                })
            }));
            assert!(result.is_err());
            assert!(done.into_inner() < 6);
        }
        assert_eq!(run(5, Wakes::Now, &|_| {}), [1; 5]);
    }
}
