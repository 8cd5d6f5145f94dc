// The actions of a search form: start and, while the search runs, progress and stop.

import { Search } from 'lucide-react';
import { Button } from '../../ui/button.js';
import { formatCount } from '../../ui/format.js';
import { Progress } from '../../ui/progress.js';
import type { JobProgress } from '../../ui/remaining-time.js';

interface SearchActionsProps {
  /** The label of the button that starts the search. */
  readonly action: string;
  readonly isReady: boolean;
  /** Undefined unless the search is running. */
  readonly running:
    | { readonly progress: JobProgress | undefined; readonly found: string }
    | undefined;
  readonly onStop: () => void;
}

export function SearchActions({ action, isReady, running, onStop }: SearchActionsProps) {
  if (running === undefined) {
    return (
      <div>
        <Button type="submit" kind="primary" icon={Search} disabled={!isReady}>
          {action}
        </Button>
      </div>
    );
  }
  const { progress, found } = running;
  const compared =
    progress && `${formatCount(progress.doneCount)} of ${formatCount(progress.totalCount)}, `;
  return (
    <Progress
      label="Comparing vectors"
      progress={progress}
      note={`${compared ?? ''}${found}`}
      onStop={onStop}
    />
  );
}
