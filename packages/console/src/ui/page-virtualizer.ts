// Virtualises a list of blocks of any height in a page that scrolls as a whole.

import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useLayoutEffect, useRef, useState } from 'react';

interface PageVirtualizerOptions {
  readonly count: number;
  /** A guess in pixels; blocks are measured when they are shown. */
  readonly estimateHeight: number;
  readonly gap?: number;
  readonly keyOf: (index: number) => string;
}

export interface PageVirtualizer<List extends HTMLElement> {
  readonly virtualizer: Virtualizer<HTMLElement, Element>;
  /** Of the element that has the blocks, which are placed absolutely in it. */
  readonly listRef: RefObject<List | null>;
  /** The pixels above the list, to be subtracted from the start of a block. */
  readonly offset: number;
}

export function usePageVirtualizer<List extends HTMLElement>({
  count,
  estimateHeight,
  gap = 0,
  keyOf,
}: PageVirtualizerOptions): PageVirtualizer<List> {
  const listRef = useRef<List>(null);
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  const [offset, setOffset] = useState(0);
  // After each render: what is above the list may have changed its height.
  useLayoutEffect(() => {
    const list = listRef.current;
    if (list === null) return;
    const found = nearestScroller(list);
    setScroller(found);
    const top = list.getBoundingClientRect().top - found.getBoundingClientRect().top;
    setOffset(Math.round(top + found.scrollTop));
  });
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller,
    estimateSize: () => estimateHeight,
    getItemKey: keyOf,
    scrollMargin: offset,
    gap,
    overscan: 4,
  });
  return { virtualizer, listRef, offset };
}

function nearestScroller(element: HTMLElement): HTMLElement {
  for (let parent = element.parentElement; parent !== null; parent = parent.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(parent).overflowY)) return parent;
  }
  return document.documentElement;
}
