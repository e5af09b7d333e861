/** The message about a configuration file that `svc fmt` would change. */
import { basename } from 'node:path';
import type { Dialect } from '../../compiler/dialects/dialect.ts';

/** Returns the message for an unformatted file. `line` is the first line that formatting would change. */
export function unformattedMessage(name: string, line: number, dialect: Dialect): string {
	const compatLanguage = /caddyfile/i.test(basename(name)) ? 'Caddyfile' : 'Compatfile';
	const language = dialect === 'compatfile' ? compatLanguage : 'Configfile';
	return `${name}:${line}: This ${language} is not formatted; this is the first line that \`svc fmt --overwrite\` would change.`;
}
