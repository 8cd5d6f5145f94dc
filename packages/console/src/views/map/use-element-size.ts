// The current size of an element in CSS pixels.

import { type RefObject, useLayoutEffect, useState } from 'react';
import type { ViewSize } from './camera.js';

export function useElementSize(element: RefObject<HTMLElement | null>): ViewSize {
  const [size, setSize] = useState<ViewSize>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const observed = element.current!;
    const read = () => setSize({ width: observed.clientWidth, height: observed.clientHeight });
    read();
    const observer = new ResizeObserver(read);
    observer.observe(observed);
    return () => observer.disconnect();
  }, [element]);
  return size;
}
