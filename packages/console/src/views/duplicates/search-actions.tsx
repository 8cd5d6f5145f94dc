// The end of the form of a search: its button and, while it runs, how far it is and how to stop it.

import { Search, Square } from 'lucide-react';
import { Button } from '../../ui/button.js';
import { formatCount, pluralize } from '../../ui/format.js';
import styles from './duplicates.module.css';

interface SearchActionsProps {
  /** What the button that starts the search says. */
  readonly action: string;
  readonly isReady: boolean;
  /** The vectors compared so far, and what was found; undefined unless the search runs. */
  readonly progress: { readonly rowCount: number; readonly found: string } | undefined;
  /** All vectors; a filter leaves some out. */
  readonly total: number;
  readonly onStop: () => void;
}

export function SearchActions({ action, isReady, progress, total, onStop }: SearchActionsProps) {
  if (progress === undefined) {
    return (
      <div className={styles.submit}>
        <Button type="submit" kind="primary" icon={Search} disabled={!isReady}>
          {action}
        </Button>
      </div>
    );
  }
  const { rowCount, found } = progress;
  return (
    <div className={styles.submit}>
      <Button icon={Square} onClick={onStop}>
        Stop
      </Button>
      <div className={styles.progress}>
        <progress aria-label="Vectors compared" value={rowCount} max={Math.max(total, 1)} />
        <span>
          {formatCount(rowCount)} of {pluralize(total, 'vector')} compared, {found}
        </span>
      </div>
    </div>
  );
}
