//! Waiting for the device: spinning, then sleeping in short slices, so that a wait ends when the device is lost or the
//! process ends.

use super::Stream;
use crate::{
    Result,
    exit::{self, Stop},
};
use ash::vk;
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// How long a wait spins before it sleeps.
const SPIN: Duration = Duration::from_micros(200);
/// How long a wait sleeps inside the driver before it looks around.
const SLICE: Duration = Duration::from_millis(50);
/// Commands that may be recorded and not done before callers have to wait.
const MOST_COMMANDS: u64 = 4_096;
/// Submissions that may be under way before callers have to wait. Drivers have room for some thousand.
const MOST_SUBMISSIONS: usize = 256;

impl Stream {
    /// Highest number up to which all commands are done.
    ///
    /// # Errors
    /// [`crate::Kind::DeviceLost`].
    pub(crate) fn completed(&self) -> Result<u64> {
        let _inside = self.device.enter()?;
        self.counter()
    }

    /// As [`Stream::completed`], for those who hold the queue's lock or an [`exit::Inside`].
    pub(super) fn counter(&self) -> Result<u64> {
        let mut value = 0;
        // SAFETY: the semaphore is a live timeline semaphore of this device.
        let code = unsafe {
            (self.device.vk.fns().v1_2.get_semaphore_counter_value)(
                self.device.handle(),
                self.timeline,
                &mut value,
            )
        };
        self.device.check("vkGetSemaphoreCounterValue", code)?;
        if value == u64::MAX {
            // A lost device may report any value.
            self.device.mark_lost("its timeline ran to the end");
            return Err(self.device.lost_error());
        }
        self.completed.fetch_max(value, Ordering::Relaxed);
        Ok(value)
    }

    /// The value `completed` last returned, without asking the driver.
    pub(crate) fn completed_hint(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Commands that were recorded and are not known to be done.
    pub(crate) fn ahead(&self) -> u64 {
        let recorded = self.recorded.load(Ordering::Relaxed);
        recorded.saturating_sub(self.completed_hint())
    }

    /// The command to wait for where callers are too far ahead of the device to record more.
    ///
    /// # Errors
    /// [`crate::Kind::DeviceLost`].
    pub(crate) fn full(&self) -> Result<Option<u64>> {
        if self.ahead() < MOST_COMMANDS && self.in_flight.load(Ordering::Relaxed) < MOST_SUBMISSIONS
        {
            return Ok(None);
        }
        let open = self.open()?;
        self.device.usable()?;
        let done = self.counter()?;
        let mut unfinished = open.unfinished(done);
        let in_flight = unfinished.len();
        self.in_flight.store(in_flight, Ordering::Relaxed);
        // Half of it, so that neither the device nor the caller stands still each time.
        let crowded = (in_flight >= MOST_SUBMISSIONS)
            .then(|| unfinished.nth(in_flight - MOST_SUBMISSIONS / 2))
            .flatten();
        let far =
            (open.sequence - done >= MOST_COMMANDS).then(|| open.sequence - MOST_COMMANDS / 2);
        Ok(crowded.max(far))
    }

    /// Waits where [`Stream::full`] says so.
    ///
    /// # Errors
    /// [`crate::Kind::DeviceLost`].
    pub(crate) fn make_room(&self) -> Result<()> {
        match self.full()? {
            // There is work for long: spinning would only heat a core.
            Some(number) if !self.spin(number, Duration::ZERO)? => self.sleep(number),
            _ => Ok(()),
        }
    }

    /// Waits until command `number` is done. Submits it first if need be.
    ///
    /// # Errors
    /// [`crate::Kind::DeviceLost`] when the device fails or a command does not finish within the timeout.
    pub(crate) fn wait(&self, number: u64) -> Result<()> {
        if self.spin(number, SPIN)? {
            Ok(())
        } else {
            self.sleep(number)
        }
    }

    /// Submits command `number` if need be and spins until it is done; false when it is not within `budget`.
    ///
    /// # Errors
    /// [`crate::Kind::DeviceLost`].
    pub(crate) fn spin(&self, number: u64, budget: Duration) -> Result<bool> {
        self.device.usable()?;
        if self.completed_hint() >= number {
            return Ok(true);
        }
        let _inside = self.device.enter()?;
        {
            let mut open = self.open()?;
            open.eager = 1;
            if open.submitted < number {
                self.submit(&mut open)?;
            }
        }
        let start = Instant::now();
        loop {
            if self.counter()? >= number {
                return Ok(true);
            }
            if start.elapsed() >= budget {
                return Ok(false);
            }
            std::hint::spin_loop();
        }
    }

    fn sleep(&self, number: u64) -> Result<()> {
        let (semaphores, values) = ([self.timeline], [number]);
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(&semaphores)
            .values(&values);
        let wait = self.device.vk.fns().v1_2.wait_semaphores;
        loop {
            let _inside = self.device.enter()?;
            // SAFETY: the info outlives the call.
            let code = unsafe { wait(self.device.handle(), &info, SLICE.as_nanos() as u64) };
            if code != vk::Result::TIMEOUT {
                self.device.check("vkWaitSemaphores", code)?;
                return self.counter().map(drop);
            }
            self.look()?;
        }
    }
}

impl Stop for Stream {
    fn stop(&self, deadline: Instant, ask: bool) -> bool {
        let idle = || {
            let submitted = self.open.try_lock().map(|open| open.submitted);
            submitted.is_some_and(|last| {
                last <= self.completed_hint()
                    || ask && self.counter().is_ok_and(|done| done >= last)
            })
        };
        self.stop_timer(deadline)
            && if ask {
                exit::until(deadline, idle)
            } else {
                idle()
            }
    }
}
