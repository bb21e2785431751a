// Replay position: null for the end (or live), otherwise a moment that advances while playing.

/** `end()` returns the active seconds of the run; `changed()` requests a new frame. */
export function newPlayer(end, changed) {
  const state = { at: null, playing: false, speed: 4 };
  let last = 0;

  function seek(moment) {
    state.at = moment !== null && moment >= end() - 0.001 && !state.playing ? null : moment;
    changed();
  }

  function toggle() {
    if (state.playing) state.playing = false;
    else {
      state.playing = true;
      if (state.at === null || state.at >= end()) state.at = 0;
      last = performance.now();
    }
    changed();
  }

  function setSpeed(speed) {
    state.speed = speed;
    changed();
  }

  /** Advance by the elapsed time; at the end it is live again. */
  function advance() {
    if (!state.playing) return;
    const now = performance.now();
    state.at += ((now - last) / 1000) * state.speed;
    last = now;
    if (state.at >= end()) Object.assign(state, { at: null, playing: false });
    else changed();
  }

  return { state, seek, toggle, setSpeed, advance };
}
