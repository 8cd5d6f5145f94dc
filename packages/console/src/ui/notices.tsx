// Short confirmations that disappear after a while. Errors are shown where they occur, not here.

import { Check } from 'lucide-react';
import { createStore, useStore } from '../api/store.js';
import styles from './notices.module.css';

interface Notice {
  readonly id: number;
  readonly text: string;
}

const SHOWN_MS = 6_000;
const notices = createStore<readonly Notice[]>([]);
let nextId = 0;

export function notify(text: string): void {
  const id = nextId++;
  notices.set([...notices.get(), { id, text }]);
  setTimeout(() => notices.set(notices.get().filter((notice) => notice.id !== id)), SHOWN_MS);
}

export function Notices() {
  return (
    <div className={styles.notices} role="status" aria-live="polite">
      {useStore(notices).map(({ id, text }) => (
        <p key={id} className={styles.notice}>
          <Check size={16} aria-hidden />
          {text}
        </p>
      ))}
    </div>
  );
}
