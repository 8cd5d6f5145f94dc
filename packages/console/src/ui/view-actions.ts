// The actions that the shown view offers to the command palette.

import { useEffect, useRef } from 'react';
import { createStore } from '../api/store.js';

interface ViewAction {
  readonly label: string;
  readonly run: () => void;
}

export const viewActions = createStore<readonly ViewAction[]>([]);

/** Offers an action while the component is mounted. */
export function useViewAction(label: string, run: () => void): void {
  const latest = useRef(run);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(() => {
    const action = { label, run: () => latest.current() };
    viewActions.set([...viewActions.get(), action]);
    return () => viewActions.set(viewActions.get().filter((each) => each !== action));
  }, [label]);
}
