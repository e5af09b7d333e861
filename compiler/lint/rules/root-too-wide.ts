/** `files/root-too-wide`. */

import { rootsOf } from '../file-roots.ts';
import type { LintRule } from '../lint-rule.ts';

const WIDE = /^\/(?:|etc|home|root|var|usr|opt|proc|sys|dev|boot|tmp|home\/[^/]+|var\/(?:lib|log|backups|spool))\/?$/;

/** A whole system folder or home folder is served. */
export const rootTooWide: LintRule = {
	name: 'files/root-too-wide',
	severity: 'warning',
	summary: 'A whole system folder or home folder is served.',
	documentation: 'Keys, databases, logs and configurations stand below such folders. Serve a folder made for it.',
	check: cx => {
		for (const { root, pointer } of rootsOf(cx.walked)) {
			if (!WIDE.test(root)) continue;
			cx.at(pointer, `\`${root}\` holds much that is not meant to be served.`, { words: root });
		}
	},
};
