// A button that opens a menu of actions.

import { Menu, MenuButton as MenuDisclosure, MenuItem, MenuProvider } from '@ariakit/react';
import { ChevronDown, type LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import buttonStyles from './button.module.css';
import { classNames } from './class-names.js';
import styles from './menu-button.module.css';

interface MenuAction {
  readonly label: string;
  readonly icon?: LucideIcon;
  readonly onSelect: () => void;
}

interface MenuButtonProps {
  readonly icon?: LucideIcon;
  readonly actions: readonly MenuAction[];
  readonly disabled?: boolean;
  readonly children: ReactNode;
}

export function MenuButton({ icon: Icon, actions, disabled = false, children }: MenuButtonProps) {
  return (
    <MenuProvider>
      <MenuDisclosure
        className={classNames(buttonStyles.button, buttonStyles.plain)}
        disabled={disabled}
      >
        {Icon && <Icon size={15} aria-hidden />}
        {children}
        <ChevronDown size={14} aria-hidden />
      </MenuDisclosure>
      <Menu className={styles.menu} gutter={4} unmountOnHide>
        {actions.map(({ label, icon: ItemIcon, onSelect }) => (
          <MenuItem key={label} className={styles.item} onClick={onSelect}>
            {ItemIcon && <ItemIcon size={15} aria-hidden />}
            {label}
          </MenuItem>
        ))}
      </Menu>
    </MenuProvider>
  );
}
