// Says where one lands that the server requires no credential, until the user dismisses it for the session of the tab.

import { ShieldAlert, X } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { usePrincipal } from '../api/queries.js';
import { IconButton } from '../ui/button.js';
import styles from './open-server-notice.module.css';

const STORAGE_KEY = 'sagitta.open-server-dismissed';

/** Renders nothing if the server requires a credential. */
export function OpenServerNotice() {
  const { data: principal } = usePrincipal();
  const [isDismissed, setDismissed] = useState(sessionStorage.getItem(STORAGE_KEY) !== null);
  if (isDismissed || principal === undefined || principal.credentials_required) return null;
  const dismiss = () => {
    sessionStorage.setItem(STORAGE_KEY, 'yes');
    setDismissed(true);
  };
  return (
    <div className={styles.notice}>
      <ShieldAlert size={18} aria-hidden />
      <p>
        This server is open: anyone who can reach it has full access.{' '}
        <Link href="/keys">Create a key</Link> to require authentication.
      </p>
      <IconButton icon={X} label="Dismiss for this session" onClick={dismiss} />
    </div>
  );
}
