// The progress of a job: a bar, a text, the remaining time and a button that stops it.

import { Square } from 'lucide-react';
import { Button } from './button.js';
import styles from './progress.module.css';
import { type JobProgress, remainingText, shareText } from './remaining-time.js';

interface ProgressProps {
  readonly label: string;
  /** Undefined until the job has counted its work. */
  readonly progress: JobProgress | undefined;
  /** Beside the share, such as what has been found. */
  readonly note?: string | undefined;
  readonly onStop: () => void;
}

export function Progress({ label, progress, note, onStop }: ProgressProps) {
  const { doneCount, totalCount } = progress ?? {};
  const texts = [note, progress && shareText(progress), progress && remainingText(progress)];
  return (
    <div className={styles.row}>
      <progress aria-label={label} value={doneCount} max={Math.max(1, totalCount ?? 1)} />
      <span className={styles.text}>{[label, ...texts.filter(Boolean)].join(' · ')}</span>
      <Button icon={Square} onClick={onStop}>
        Stop
      </Button>
    </div>
  );
}
