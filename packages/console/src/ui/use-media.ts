// Whether a media query matches, at present and after every change.

import { useCallback, useSyncExternalStore } from 'react';

/** The width below which the style sheets lay out pages for phones. */
export const NARROW = '(max-width: 48rem)';

export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (onChange: () => void) => {
      const list = matchMedia(query);
      list.addEventListener('change', onChange);
      return () => list.removeEventListener('change', onChange);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}
