// The frame around the views: navigation, command palette, connection state and sign-in dialog. Views stay
// mounted beneath dialogs, so that no input is lost.

import { Menu, Monitor, Moon, Search, Sun, X } from 'lucide-react';
import { type ReactNode, useEffect, useState } from 'react';
import { useLocation } from 'wouter';
import { connection } from '../api/connection.js';
import { useStore } from '../api/store.js';
import { IconButton } from '../ui/button.js';
import { classNames } from '../ui/class-names.js';
import { Notices } from '../ui/notices.js';
import { nextTheme, theme } from '../ui/theme.js';
import { CommandPalette } from './command-palette.js';
import { HelpMenu } from './help-menu.js';
import { Navigation } from './navigation.js';
import { SessionMenu } from './session-menu.js';
import styles from './shell.module.css';
import { SignIn } from './sign-in.js';

const THEME_ICONS = { system: Monitor, light: Sun, dark: Moon };

export function Shell({ children }: { readonly children: ReactNode }) {
  const [isNavigationOpen, setNavigationOpen] = useState(false);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [location] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: closes whenever the location changes
  useEffect(() => setNavigationOpen(false), [location]);
  usePaletteShortcut(() => setPaletteOpen(true));
  return (
    <div className={styles.shell}>
      <button type="button" className={styles.skip} onClick={focusMain}>
        Skip to content
      </button>
      <header className={styles.topBar}>
        <IconButton
          className={styles.menuButton}
          icon={isNavigationOpen ? X : Menu}
          label={isNavigationOpen ? 'Close the navigation' : 'Open the navigation'}
          aria-expanded={isNavigationOpen}
          onClick={() => setNavigationOpen(!isNavigationOpen)}
        />
        <a className={styles.brand} href="#/">
          <Logo />
          Sagitta
        </a>
        <button
          type="button"
          className={styles.search}
          aria-keyshortcuts="Control+K"
          onClick={() => setPaletteOpen(true)}
        >
          <Search size={15} aria-hidden />
          <span>Go to…</span>
          <kbd aria-hidden>Ctrl K</kbd>
        </button>
        <HelpMenu />
        <ThemeButton />
        <SessionMenu />
      </header>
      <aside className={classNames(styles.sidebar, isNavigationOpen && styles.sidebarOpen)}>
        <Navigation />
      </aside>
      <main id="main" tabIndex={-1} className={styles.main}>
        <ConnectionBanner />
        {children}
      </main>
      <CommandPalette isOpen={isPaletteOpen} onClose={() => setPaletteOpen(false)} />
      <SignIn />
      <Notices />
    </div>
  );
}

/** A button rather than a link, because `#main` would be the route of another view. */
function focusMain() {
  document.getElementById('main')?.focus();
}

function usePaletteShortcut(open: () => void) {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      open();
    };
    window.addEventListener('keydown', onKeyDown);
    return () => window.removeEventListener('keydown', onKeyDown);
  });
}

function ThemeButton() {
  const chosen = useStore(theme);
  return (
    <IconButton
      icon={THEME_ICONS[chosen]}
      label={`Theme: ${chosen}. Change it`}
      onClick={nextTheme}
    />
  );
}

function ConnectionBanner() {
  if (useStore(connection) === 'connected') return null;
  return (
    <p className={styles.banner} role="status">
      The server cannot be reached. Retrying… What you see may be outdated; your input is kept.
    </p>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden>
      <rect width="32" height="32" rx="7" fill="var(--accent)" />
      <path
        d="M8 24 22 10M14 9h9v9"
        fill="none"
        stroke="var(--on-accent)"
        strokeWidth="3"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
      <circle cx="9" cy="23" r="2.6" fill="var(--on-accent)" />
    </svg>
  );
}
