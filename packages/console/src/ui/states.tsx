// Placeholders for the data of a view: loading, empty or failed.

import { CircleAlert, Inbox } from 'lucide-react';
import type { ReactNode } from 'react';
import { describeError } from '../api/describe-error.js';
import { Button } from './button.js';
import styles from './states.module.css';

export function Loading({ label = 'Loading' }: { readonly label?: string }) {
  return (
    <div className={styles.loading} role="status">
      <span className={styles.bar} aria-hidden />
      <span className={styles.bar} aria-hidden />
      <span className={styles.bar} aria-hidden />
      <span className="visually-hidden">{label}…</span>
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

export function Empty({ title, children }: EmptyProps) {
  return (
    <div className={styles.empty}>
      <Inbox size={28} strokeWidth={1.4} aria-hidden />
      <p className={styles.emptyTitle}>{title}</p>
      {children}
    </div>
  );
}

interface ErrorMessageProps {
  readonly error: unknown;
  /** Replaces the title derived from the error. */
  readonly title?: string;
  readonly onRetry?: (() => void) | undefined;
}

/** The error of a request, with its request id for the server's log. */
export function ErrorMessage({ error, title, onRetry }: ErrorMessageProps) {
  const { title: suggested, detail, items, requestId } = describeError(error);
  return (
    <div className={styles.problem} role="alert">
      <CircleAlert size={18} aria-hidden />
      <div className={styles.problemText}>
        <p className={styles.problemTitle}>{title ?? suggested}</p>
        <p>{detail}</p>
        {items.length > 0 && (
          <ul className={styles.items}>
            {items.map((item) => (
              <li key={item}>{item}</li>
            ))}
          </ul>
        )}
        {requestId !== undefined && (
          <p className={styles.requestId}>
            request <code>{requestId}</code>
          </p>
        )}
      </div>
      {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}
