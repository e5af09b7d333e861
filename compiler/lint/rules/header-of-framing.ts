/**
 * The lint rule `header/of-framing`, which reports an edit of a field that belongs to the connection rather than to the message.
 */
import { fieldEditsOf } from '../inspection/header-fields.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

const FRAMING_FIELD =
	/^(?:connection|keep-alive|transfer-encoding|content-length|te|trailer|upgrade|proxy-connection)$/i;

export const headerOfFraming: LintRule = {
	name: 'header/of-framing',
	severity: 'warning',
	summary: 'A field is set that belongs to the connection, not to the message.',
	documentation: [
		'`Content-Length`, `Transfer-Encoding`, `Connection` and the like delimit messages on a connection',
		'(RFC 9110 §7.6.1, RFC 9112 §6). The server sends them itself; if set by hand, they are dropped or break the connection.',
	].join('\n'),
	dependsOn: 'site',
	check: cx => {
		for (const { name, pointer, isRemoval } of fieldEditsOf(cx.walkedDocument)) {
			if (isRemoval || !FRAMING_FIELD.test(name)) continue;
			cx.reportAt(pointer, `\`${name}\` belongs to the connection: the server sends it itself.`, { words: name });
		}
	},
};
