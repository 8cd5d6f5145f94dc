// Placeholders in the shape of a view, while its code or its first data is loading.

import { PageContent, Panel } from './panel.js';
import styles from './skeleton.module.css';

/**
 * `page` is a heading and panels; `table` is a toolbar and rows, `rows` the rows alone; `split` is a form beside
 * results; `canvas` is a toolbar above a picture with a legend.
 */
export type SkeletonShape = 'page' | 'table' | 'rows' | 'split' | 'canvas';

const FIGURES = 4;
const LINES = 5;
const BUTTONS = 3;
/** More than fit into most windows; the rest is cut off. */
const ROWS = 24;

interface SkeletonProps {
  readonly shape: SkeletonShape;
  /** What screen readers say. */
  readonly label?: string;
}

export function Skeleton({ shape, label = 'Loading' }: SkeletonProps) {
  const Shape = SHAPES[shape];
  return (
    <div className={styles.skeleton} role="status">
      <span className="visually-hidden">{label}…</span>
      <div aria-hidden className={styles.shape}>
        <Shape />
      </div>
    </div>
  );
}

const SHAPES = { page: Page, table: Table, rows: Rows, split: Split, canvas: Canvas };

function Page() {
  return (
    <div>
      <PageContent>
        <span className={styles.title} />
        <Panel>
          <div className={styles.figures}>
            {times(FIGURES, (at) => (
              <span key={at} className={styles.figure} />
            ))}
          </div>
        </Panel>
        <Panel>
          <Lines />
        </Panel>
      </PageContent>
    </div>
  );
}

function Table() {
  return (
    <>
      <Toolbar />
      <Rows />
    </>
  );
}

function Rows() {
  return (
    <div className={styles.rows}>
      {times(ROWS, (at) => (
        <div key={at} className={styles.row}>
          <span className={styles.line} />
          <span className={styles.line} />
          <span className={styles.line} />
        </div>
      ))}
    </div>
  );
}

function Split() {
  return (
    <div className={styles.split}>
      <div className={styles.form}>
        <Lines />
      </div>
      <Rows />
    </div>
  );
}

function Canvas() {
  return (
    <>
      <Toolbar />
      <div className={styles.canvas}>
        <div className={styles.legend}>
          <Lines />
        </div>
      </div>
    </>
  );
}

function Toolbar() {
  return (
    <div className={styles.toolbar}>
      {times(BUTTONS, (at) => (
        <span key={at} className={styles.button} />
      ))}
    </div>
  );
}

function Lines() {
  return (
    <div className={styles.lines}>
      {times(LINES, (at) => (
        <span key={at} className={styles.line} />
      ))}
    </div>
  );
}

function times<Item>(count: number, create: (at: number) => Item): Item[] {
  return Array.from({ length: count }, (_, at) => create(at));
}
