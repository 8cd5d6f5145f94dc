// The current size of an element in CSS pixels.

import { type RefObject, useLayoutEffect, useState } from 'react';

interface ElementSize {
  readonly width: number;
  readonly height: number;
}

export function useElementSize(element: RefObject<HTMLElement | null>): ElementSize {
  const [size, setSize] = useState<ElementSize>({ width: 0, height: 0 });
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
