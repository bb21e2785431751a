// What was entered in the composer and not started yet. Each tab keeps its own, also over a reload.

const DRAFT = "council-draft"; // name in the storage of the tab

export function loadDraft() {
  try {
    const stored = JSON.parse(sessionStorage.getItem(DRAFT));
    return stored && typeof stored === "object" ? stored : {};
  } catch {
    return {};
  }
}

export function saveDraft(draft) {
  try {
    sessionStorage.setItem(DRAFT, JSON.stringify(draft));
  } catch {
    // no storage in a private window: the draft ends with the page
  }
}

export const removeDraft = () => sessionStorage.removeItem(DRAFT);
