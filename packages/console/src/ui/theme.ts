// The colour theme: the system's, or the user's choice, which the browser remembers.

import { createStore, useStore } from '../api/store.js';
import { useMedia } from './use-media.js';

export type Theme = 'system' | 'light' | 'dark';

const STORAGE_KEY = 'sagitta.theme';
const SYSTEM_IS_DARK = '(prefers-color-scheme: dark)';
export const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

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

/** To the opposite of the one in effect. */
export function toggleTheme(): void {
  const shown = theme.get();
  const isDark = shown === 'system' ? matchMedia(SYSTEM_IS_DARK).matches : shown === 'dark';
  setTheme(isDark ? 'light' : 'dark');
}

function applyTheme(next: Theme): void {
  if (next === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
}

function readTheme(): Theme {
  const stored = localStorage.getItem(STORAGE_KEY);
  return THEMES.find((name) => name === stored) ?? 'system';
}

/** The theme in effect, for content that CSS cannot colour, such as a canvas. */
export function useShownTheme(): 'light' | 'dark' {
  const chosen = useStore(theme);
  const isSystemDark = useMedia(SYSTEM_IS_DARK);
  if (chosen !== 'system') return chosen;
  return isSystemDark ? 'dark' : 'light';
}
