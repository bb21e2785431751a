// Where in a run the page looks: at its end (or live), or at a moment of it that moves on when it plays.

/** `end()` is how long the run has been at work; `changed()` asks for a new frame. */
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

  function pace(speed) {
    state.speed = speed;
    changed();
  }

  /** As much further as time has passed; at the end it is live again. */
  function move() {
    if (!state.playing) return;
    const now = performance.now();
    state.at += ((now - last) / 1000) * state.speed;
    last = now;
    if (state.at >= end()) Object.assign(state, { at: null, playing: false });
    else changed();
  }

  return { state, seek, toggle, pace, move };
}
