// Run long work in short slices, so that the browser can paint and handle input between them.

const SLICE_MS = 8; // milliseconds per slice
const jobs = [];
let timer = 0;

/** Run a generator in slices and call `done` at its end. Return a function that cancels it. */
export function runInSlices(work, done = () => {}) {
  const job = { work, done, isCancelled: false };
  jobs.push(job);
  timer ||= setTimeout(runSlice, 0);
  return () => {
    job.isCancelled = true;
  };
}

function runSlice() {
  const end = performance.now() + SLICE_MS;
  timer = 0;
  while (jobs.length && performance.now() < end) {
    const job = jobs[0];
    const isOver = job.isCancelled || job.work.next().done;
    if (!isOver) continue;
    jobs.shift();
    if (!job.isCancelled) job.done();
  }
  if (jobs.length) timer = setTimeout(runSlice, 0);
}
