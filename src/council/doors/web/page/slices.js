// Long work in short slices: between two of them the browser paints and hears the keyboard.

const BUDGET = 8; // milliseconds of one slice
const waiting = [];
let timer = 0;

/** Run a generator to its end, a slice at a time; `done` is called after its last step. Returns how to give it up. */
export function slowly(work, done = () => {}) {
  const job = { work, done, dropped: false };
  waiting.push(job);
  timer ||= setTimeout(slice, 0);
  return () => {
    job.dropped = true;
  };
}

function slice() {
  const end = performance.now() + BUDGET;
  timer = 0;
  while (waiting.length && performance.now() < end) {
    const job = waiting[0];
    const over = job.dropped || job.work.next().done;
    if (!over) continue;
    waiting.shift();
    if (!job.dropped) job.done();
  }
  if (waiting.length) timer = setTimeout(slice, 0);
}
