// The menu of documents that the server itself serves.

import { Menu, MenuButton, MenuItem, MenuProvider } from '@ariakit/react';
import { CircleHelp } from 'lucide-react';
import { SERVER_URL } from '../api/session.js';
import menuStyles from '../ui/menu-button.module.css';
import styles from './session-menu.module.css';

const DOCUMENTS = [
  { path: '/docs/guide/', label: 'Guide' },
  { path: '/docs/', label: 'API reference' },
  { path: '/openapi.json', label: 'OpenAPI document' },
];

export function HelpMenu() {
  return (
    <MenuProvider placement="bottom-end">
      <MenuButton className={styles.button} aria-label="Help" title="Help">
        <CircleHelp size={16} aria-hidden />
      </MenuButton>
      <Menu className={menuStyles.menu} gutter={6} unmountOnHide>
        {DOCUMENTS.map(({ path, label }) => (
          <MenuItem
            key={path}
            className={menuStyles.item}
            render={<a href={`${SERVER_URL}${path}`} target="_blank" rel="noreferrer" />}
          >
            {label}
          </MenuItem>
        ))}
      </Menu>
    </MenuProvider>
  );
}
