//! Jobs on several threads, with results in the order of the jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::Error;

/// The time between two calls of `proceed` while other threads work.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The least number of rows for which a thread is started.
pub const MIN_ROWS_PER_THREAD: usize = 1 << 14;

/// The threads of a request: the caller's and helpers.
pub struct ThreadScope<'a> {
    pub threads: usize,
    /// Whether to go on. Only the caller's thread calls it.
    pub proceed: &'a mut dyn FnMut() -> bool,
}

impl ThreadScope<'_> {
    /// Runs all jobs and returns their results in order. If several fail, returns the error
    /// of the first job in order.
    pub fn each<J: Send, R: Send>(
        &mut self,
        jobs: Vec<J>,
        work: impl Fn(J, &mut dyn FnMut() -> bool) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        each(self.threads, jobs, work, self.proceed)
    }

    /// The length of the stretches into which `rows` are divided, one per thread, if each
    /// thread keeps `counts` counters.
    pub fn chunk_len(&self, rows: usize, counts: usize) -> usize {
        let worth = rows / MIN_ROWS_PER_THREAD.max(4 * counts);
        rows.div_ceil(self.threads.min(worth).max(1)).max(1)
    }
}

fn each<J: Send, R: Send>(
    threads: usize,
    jobs: Vec<J>,
    work: impl Fn(J, &mut dyn FnMut() -> bool) -> Result<R, Error> + Sync,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<Vec<R>, Error> {
    each_with(threads, jobs, work, proceed, |scope, helper| {
        thread::Builder::new().spawn_scoped(scope, helper).is_ok()
    })
}

/// A thread beside the caller's: does jobs until there are no more.
type Helper<'scope> = Box<dyn FnOnce() + Send + 'scope>;

/// [`each`], where `spawn` starts threads and returns whether it could. If the system gives
/// no more threads, the running ones do all the work, at least the caller's.
fn each_with<J: Send, R: Send>(
    threads: usize,
    jobs: Vec<J>,
    work: impl Fn(J, &mut dyn FnMut() -> bool) -> Result<R, Error> + Sync,
    proceed: &mut dyn FnMut() -> bool,
    spawn: impl for<'scope> Fn(&'scope thread::Scope<'scope, '_>, Helper<'scope>) -> bool,
) -> Result<Vec<R>, Error> {
    let helpers = threads.min(jobs.len()).saturating_sub(1);
    if helpers == 0 {
        return jobs.into_iter().map(|job| work(job, proceed)).collect();
    }
    let count = jobs.len();
    let queue = JobQueue {
        jobs: Mutex::new(jobs.into_iter().enumerate()),
        results: Mutex::new((0..count).map(|_| None).collect()),
        stop: AtomicBool::new(false),
        failed: AtomicUsize::new(usize::MAX),
    };
    let working = AtomicUsize::new(0);
    thread::scope(|scope| {
        let caller = thread::current();
        for _ in 0..helpers {
            let (queue, work, working, caller) = (&queue, &work, &working, caller.clone());
            // Counted; dropped if the thread does not start, which decrements the count.
            working.fetch_add(1, Ordering::Relaxed);
            let done = HelperGuard { working, caller };
            let helper = move || {
                let _done = done;
                queue.work(work, &mut || true);
            };
            if !spawn(scope, Box::new(helper)) {
                break;
            }
        }
        queue.work(&work, proceed);
        while working.load(Ordering::Acquire) > 0 {
            queue.may_go_on(proceed);
            thread::park_timeout(CHECK_INTERVAL);
        }
    });
    if queue.stop.into_inner() {
        return Err(Error::Interrupted);
    }
    let results = queue.results.into_inner().expect("no job panicked");
    // Jobs are taken in order: all before the first failed one are done.
    results
        .into_iter()
        .map(|result| result.expect("done"))
        .collect()
}

struct JobQueue<I, R> {
    jobs: Mutex<I>,
    results: Mutex<Vec<Option<Result<R, Error>>>>,
    stop: AtomicBool,
    /// The first job that failed so far.
    failed: AtomicUsize,
}

impl<J, R, I: Iterator<Item = (usize, J)>> JobQueue<I, R> {
    /// Whether to go on. After the first false, `proceed` is not called again.
    fn may_go_on(&self, proceed: &mut dyn FnMut() -> bool) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        let on = proceed();
        if !on {
            self.stop.store(true, Ordering::Relaxed);
        }
        on
    }

    fn work(
        &self,
        work: &impl Fn(J, &mut dyn FnMut() -> bool) -> Result<R, Error>,
        proceed: &mut dyn FnMut() -> bool,
    ) {
        while !self.stop.load(Ordering::Relaxed) {
            let next = self.jobs.lock().expect("no job panicked").next();
            let Some((index, job)) = next else {
                return;
            };
            let result = work(job, &mut || {
                let failed = self.failed.load(Ordering::Relaxed) < index;
                self.may_go_on(proceed) && !failed
            });
            if result.is_err() {
                self.failed.fetch_min(index, Ordering::Relaxed);
            }
            self.results.lock().expect("no job panicked")[index] = Some(result);
        }
    }
}

/// Tells the caller that a helper has ended, also if it panicked.
struct HelperGuard<'a> {
    working: &'a AtomicUsize,
    caller: thread::Thread,
}

impl Drop for HelperGuard<'_> {
    fn drop(&mut self) {
        self.working.fetch_sub(1, Ordering::Release);
        self.caller.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(row: usize) -> Error {
        Error::Overflow {
            span: 0,
            agg: 0,
            row,
            value: 0,
        }
    }

    #[test]
    fn stretches_are_worth_a_thread() {
        let scope = |threads, rows, counts| {
            let proceed: &mut dyn FnMut() -> bool = &mut || true;
            ThreadScope { threads, proceed }.chunk_len(rows, counts)
        };
        assert_eq!(scope(4, 0, 0), 1);
        assert_eq!(scope(4, MIN_ROWS_PER_THREAD, 0), MIN_ROWS_PER_THREAD);
        assert_eq!(scope(4, 2 * MIN_ROWS_PER_THREAD, 0), MIN_ROWS_PER_THREAD);
        assert_eq!(
            scope(0, 8 * MIN_ROWS_PER_THREAD, 0),
            8 * MIN_ROWS_PER_THREAD
        );
        assert_eq!(
            scope(4, 8 * MIN_ROWS_PER_THREAD, 0),
            2 * MIN_ROWS_PER_THREAD
        );
        assert_eq!(
            scope(4, 8 * MIN_ROWS_PER_THREAD, MIN_ROWS_PER_THREAD),
            4 * MIN_ROWS_PER_THREAD
        );
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for threads in [1, 2, 3, 9] {
            let square = |job: usize, _: &mut dyn FnMut() -> bool| Ok(job * job);
            let done = each(threads, (0..50).collect(), square, &mut || true);
            assert_eq!(done, Ok((0..50).map(|job| job * job).collect()));
        }
    }

    #[test]
    fn the_error_is_that_of_the_first_job_which_fails() {
        let turns = if cfg!(miri) { 10 } else { 200 };
        for threads in [1, 2, 4] {
            for _ in 0..turns {
                let fail = |job: usize, proceed: &mut dyn FnMut() -> bool| {
                    if job % 10 == 7 {
                        return Err(failure(job));
                    }
                    if proceed() {
                        Ok(job)
                    } else {
                        Err(Error::Interrupted)
                    }
                };
                let done = each(threads, (0..40).collect(), fail, &mut || true);
                assert_eq!(done, Err(failure(7)));
            }
        }
    }

    #[test]
    fn jobs_are_done_by_the_threads_that_the_system_grants() {
        for granted in [0, 1, 2, 9] {
            let started = AtomicUsize::new(0);
            let square = |job: usize, _: &mut dyn FnMut() -> bool| Ok(job * job);
            let done = each_with(
                8,
                (0..50).collect(),
                square,
                &mut || true,
                |scope, helper| {
                    let grants = started.load(Ordering::Relaxed) < granted;
                    if grants {
                        started.fetch_add(1, Ordering::Relaxed);
                        scope.spawn(helper);
                    }
                    grants
                },
            );
            assert_eq!(done, Ok((0..50).map(|job| job * job).collect()));
            assert_eq!(started.into_inner(), granted.min(7));
        }
    }

    #[test]
    fn the_caller_can_stop_all() {
        let wait = |_: usize, proceed: &mut dyn FnMut() -> bool| {
            while proceed() {
                thread::yield_now();
            }
            Err::<(), _>(Error::Interrupted)
        };
        let mut calls = 0;
        let done = each(3, (0..9).collect(), wait, &mut || {
            calls += 1;
            calls < 100
        });
        assert_eq!(done, Err(Error::Interrupted));
    }
}
