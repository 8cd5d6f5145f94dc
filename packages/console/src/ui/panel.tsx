// Pages, panels, figures and badges.

import type { ReactNode } from 'react';
import { classNames } from './class-names.js';
import styles from './panel.module.css';

interface PageLayoutProps {
  readonly title: ReactNode;
  readonly subtitle?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A view that scrolls as a whole: a heading and its panels. */
export function PageLayout({ title, subtitle, actions, children }: PageLayoutProps) {
  return (
    <div className={styles.page}>
      <header className={styles.pageHeader}>
        <div className={styles.pageTitle}>
          <h1>{title}</h1>
          {subtitle !== undefined && <p className={styles.subtitle}>{subtitle}</p>}
        </div>
        {actions !== undefined && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** What stands in the place of a view and has no heading of its own. */
export function PageContent({ children }: { readonly children: ReactNode }) {
  return <div className={styles.page}>{children}</div>;
}

interface PanelProps {
  readonly title?: ReactNode;
  readonly actions?: ReactNode;
  readonly className?: string | undefined;
  readonly children: ReactNode;
}

export function Panel({ title, actions, className, children }: PanelProps) {
  return (
    <section className={classNames(styles.panel, className)}>
      {title !== undefined && (
        <div className={styles.panelHeader}>
          <h2>{title}</h2>
          {actions !== undefined && <div className={styles.actions}>{actions}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

interface StatProps {
  readonly label: string;
  readonly value: ReactNode;
  readonly note?: ReactNode;
}

/** A figure with a label, for use in a `StatList`. */
export function Stat({ label, value, note }: StatProps) {
  return (
    <div className={styles.stat}>
      <dt>{label}</dt>
      <dd>{value}</dd>
      {note !== undefined && <dd className={styles.statNote}>{note}</dd>}
    </div>
  );
}

export function StatList({ children }: { readonly children: ReactNode }) {
  return <dl className={styles.stats}>{children}</dl>;
}

interface BadgeProps {
  readonly tone?: 'neutral' | 'success' | 'warning' | 'danger';
  readonly children: ReactNode;
}

export function Badge({ tone = 'neutral', children }: BadgeProps) {
  return <span className={classNames(styles.badge, styles[tone])}>{children}</span>;
}
