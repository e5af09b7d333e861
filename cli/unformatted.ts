/** What is said about a text that `svc fmt` would change. */
import type { Dialect } from '../compiler/dialects/dialect.ts';

/** `Configfile:3: Configfile input is not formatted; …`; `line` is that of the first difference. */
export function unformatted(name: string, line: number, dialect: Dialect): string {
	const language = dialect === 'compatfile' ? 'Compatfile' : 'Configfile';
	return `${name}:${line}: ${language} input is not formatted; \`svc fmt --overwrite\` fixes that.`;
}
