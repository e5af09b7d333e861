/** Parses the heads of CGI responses (RFC 3875 §6). */
import { isFieldValue, isToken, trimBlanks } from '../../../compiler/exchange/field-syntax.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';

/** Maximum number of fields in a response head. */
const MAX_FIELDS = 1000;

export interface CgiHead {
	readonly status: number;
	/** End-to-end fields, without `Content-Length`. */
	readonly headers: HeaderList;
	readonly length: number | undefined;
}

/** Returns the index of the body, which follows the first empty line (LF or CRLF), or -1 if no empty line has arrived. */
export function findBodyStart(text: string): number {
	const lfBreak = text.indexOf('\n\n');
	const crlfBreak = text.indexOf('\n\r\n');
	if (text.startsWith('\r\n')) return 2;
	if (text.startsWith('\n')) return 1;
	if (lfBreak === -1 && crlfBreak === -1) return -1;
	return crlfBreak === -1 || (lfBreak !== -1 && lfBreak < crlfBreak) ? lfBreak + 2 : crlfBreak + 3;
}

/** Parses a Latin-1 response head without its final empty line. Returns an error message if the head is invalid. */
export function parseCgiHead(text: string): CgiHead | string {
	const items: string[] = [];
	let status = 0;
	let length: number | undefined;
	let hasLocation = false;
	for (const line of text.split(/\r?\n/)) {
		if (line === '') continue;
		const colon = line.indexOf(':');
		const name = line.slice(0, colon);
		const value = trimBlanks(line.slice(colon + 1));
		if (colon < 1 || !isToken(name) || !isFieldValue(value)) return 'a field line is not valid';
		switch (name.toLowerCase()) {
			case 'status': {
				const match = /^(\d{3})(?: |$)/.exec(value);
				if (!match || Number(match[1]) < 200 || Number(match[1]) > 599) return 'the status is not valid';
				status = Number(match[1]);
				break;
			}
			case 'content-length':
				if (!/^\d{1,15}$/.test(value)) return 'Content-Length is not a number';
				length = Number(value);
				break;
			case 'connection':
			case 'keep-alive':
			case 'proxy-connection':
			case 'transfer-encoding':
			case 'upgrade':
			case 'te':
			case 'trailer':
				break;
			case 'location':
				hasLocation = true;
				items.push(name, value);
				break;
			default:
				items.push(name, value);
		}
		if (items.length > MAX_FIELDS * 2) return 'the response has too many fields';
	}
	return { status: status === 0 ? (hasLocation ? 302 : 200) : status, headers: new HeaderList(items), length };
}
