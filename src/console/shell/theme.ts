// The colour theme: that of the system, or the user's choice, which this browser remembers.

import { createStore } from '../api/store.js';

export type Theme = 'system' | 'light' | 'dark';

const STORAGE_KEY = 'sagitta.theme';
const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export const theme = createStore<Theme>(readTheme());
applyTheme(theme.get());

export function setTheme(next: Theme): void {
  localStorage.setItem(STORAGE_KEY, next);
  applyTheme(next);
  theme.set(next);
}

export function nextTheme(): void {
  setTheme(THEMES[(THEMES.indexOf(theme.get()) + 1) % THEMES.length]!);
}

function applyTheme(next: Theme): void {
  if (next === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
}

function readTheme(): Theme {
  const stored = localStorage.getItem(STORAGE_KEY);
  return THEMES.find((name) => name === stored) ?? 'system';
}
