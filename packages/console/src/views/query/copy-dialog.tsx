// Shows a query as a program to copy.

import { Tab, TabList, TabPanel, TabProvider } from '@ariakit/react';
import type { QueryRequest } from '@sagitta/client';
import { useState } from 'react';
import { SERVER_URL, session } from '../../api/session.js';
import { useStore } from '../../api/store.js';
import { CopyButton } from '../../ui/copy-button.js';
import { Dialog } from '../../ui/dialog.js';
import { CREDENTIAL_VARIABLE, LANGUAGES, type Language } from './copy-as.js';
import styles from './query.module.css';

interface CopyDialogProps {
  readonly collectionId: string;
  readonly request: QueryRequest;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function CopyDialog({ collectionId, request, isOpen, onClose }: CopyDialogProps) {
  const [language, setLanguage] = useState<Language>('curl');
  const needsCredential = useStore(session).credential !== undefined;
  const copied = { baseUrl: SERVER_URL, collectionId, request, needsCredential };
  const code = LANGUAGES[language].write(copied);
  return (
    <Dialog title="Copy the query as a program" isOpen={isOpen} onClose={onClose}>
      <TabProvider selectedId={language} setSelectedId={(id) => id && setLanguage(id as Language)}>
        <div className={styles.copyHeader}>
          <TabList className={styles.tabs} aria-label="Language">
            {(Object.keys(LANGUAGES) as Language[]).map((id) => (
              <Tab key={id} id={id} className={styles.tab}>
                {LANGUAGES[id].label}
              </Tab>
            ))}
          </TabList>
          <CopyButton text={code} label="Copy" isLabelShown />
        </div>
        <TabPanel tabId={language}>
          <pre className={styles.code}>{code}</pre>
        </TabPanel>
      </TabProvider>
      {needsCredential && (
        <p className={styles.note}>
          The program reads your credential from the environment variable{' '}
          <code>{CREDENTIAL_VARIABLE}</code>.
        </p>
      )}
    </Dialog>
  );
}
