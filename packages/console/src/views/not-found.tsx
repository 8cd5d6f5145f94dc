// In place of a view whose address leads nowhere: what is missing, and a way back.

import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { PageLayout, Panel } from '../ui/panel.js';
import { Empty } from '../ui/states.js';

interface NotFoundProps {
  /** The title of the page. */
  readonly title: string;
  readonly what: string;
  readonly children: ReactNode;
}

export function NotFound({ title, what, children }: NotFoundProps) {
  return (
    <PageLayout title={title}>
      <Panel>
        <Empty title={what}>
          <p>{children}</p>
          <Link href="/">Go to the overview</Link>
        </Empty>
      </Panel>
    </PageLayout>
  );
}
