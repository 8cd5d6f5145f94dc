// The menu of documents that the server itself serves.

import { Menu, MenuButton, MenuItem, MenuProvider } from '@ariakit/react';
import { CircleHelp } from 'lucide-react';
import { SERVER_URL } from '../api/session.js';
import menuStyles from '../ui/menu-button.module.css';
import styles from './session-menu.module.css';

export const DOCUMENTS = [
  { url: `${SERVER_URL}/docs/api-guide.html`, label: 'Guide' },
  { url: `${SERVER_URL}/docs/`, label: 'API reference' },
  { url: `${SERVER_URL}/openapi.json`, label: 'OpenAPI document' },
];

export function HelpMenu() {
  return (
    <MenuProvider placement="bottom-end">
      <MenuButton className={styles.button} aria-label="Help" title="Help">
        <CircleHelp size={16} aria-hidden />
      </MenuButton>
      <Menu className={menuStyles.menu} gutter={6} unmountOnHide>
        {DOCUMENTS.map(({ url, label }) => (
          <MenuItem
            key={url}
            className={menuStyles.item}
            render={<a href={url} target="_blank" rel="noreferrer" />}
          >
            {label}
          </MenuItem>
        ))}
      </Menu>
    </MenuProvider>
  );
}
