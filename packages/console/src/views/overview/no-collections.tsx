// Explains how to create a first collection.

import { Link } from 'wouter';
import { CopyButton } from '../../ui/copy-button.js';
import { Panel } from '../../ui/panel.js';
import { Empty } from '../../ui/states.js';
import styles from './overview.module.css';

const COMMANDS = [
  { text: 'sagitta demo', what: 'A server with sample data' },
  {
    text: 'sagitta import vectors.parquet --collection documents',
    what: 'A file, from the command line',
  },
];

export function NoCollections() {
  return (
    <Panel>
      <Empty title="No collections yet">
        <p>
          <Link href="/import">Import a file</Link> with vectors (Parquet, Arrow, NDJSON, CSV or
          npy), or create an empty collection above.
        </p>
        <div className={styles.first}>
          {COMMANDS.map(({ text, what }) => (
            <div key={text}>
              <p>{what}</p>
              <div className={styles.command}>
                <pre>{text}</pre>
                <CopyButton text={text} label={`Copy: ${text}`} />
              </div>
            </div>
          ))}
        </div>
      </Empty>
    </Panel>
  );
}
