// A row that scrolls sideways where it is too wide, and fades at each edge behind which there is more.

import { type ReactNode, useEffect, useRef, useState } from 'react';
import { classNames } from './class-names.js';
import styles from './scroll-strip.module.css';

/** The edges behind which there is more. */
type Hidden = 'none' | 'before' | 'after' | 'both';

interface ScrollStripProps {
  /** Whenever it changes, the element with `aria-current` is scrolled into view. */
  readonly current: string;
  readonly className?: string | undefined;
  readonly children: ReactNode;
}

export function ScrollStrip({ current, className, children }: ScrollStripProps) {
  const strip = useRef<HTMLDivElement>(null);
  const [hidden, setHidden] = useState<Hidden>('none');
  useEffect(() => {
    const element = strip.current!;
    const measure = () => setHidden(hiddenOf(element));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the current element depends on it
  useEffect(() => {
    const shown = strip.current!.querySelector('[aria-current]');
    shown?.scrollIntoView({ inline: 'center', block: 'nearest' });
  }, [current]);
  return (
    <div ref={strip} className={classNames(styles.strip, className)} data-hidden={hidden}>
      {children}
    </div>
  );
}

/** Offsets are fractions on dense screens, hence the pixel. */
function hiddenOf({ scrollLeft, scrollWidth, clientWidth }: HTMLElement): Hidden {
  const isBefore = scrollLeft > 1;
  const isAfter = scrollLeft + clientWidth < scrollWidth - 1;
  if (isBefore) return isAfter ? 'both' : 'before';
  return isAfter ? 'after' : 'none';
}
