// Virtualises a list of blocks of varying height in a page that scrolls as a whole.

import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useLayoutEffect, useRef, useState } from 'react';

interface PageVirtualizerOptions {
  readonly count: number;
  /** An estimate in pixels; blocks are measured when they are shown. */
  readonly estimateHeight: number;
  readonly gap?: number;
  readonly keyOf: (index: number) => string;
}

export interface PageVirtualizer<List extends HTMLElement> {
  readonly virtualizer: Virtualizer<HTMLElement, Element>;
  /** For the element that contains the blocks, which are positioned absolutely. */
  readonly listRef: RefObject<List | null>;
  /** Pixels above the list, to be subtracted from the start of a block. */
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
  // After each render, because the content above the list may have changed its height.
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
