/** `protocols` inside `servers`: the versions of HTTP that a listener speaks. */
import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Word } from '../../../syntax/ast.ts';
import type { ServerOption } from './server-option.ts';

/** What the languages know. */
const KNOWN: readonly string[] = ['h1', 'h2', 'h2c', 'h3'];

/** The versions of a listener whose settings name none. */
export const DEFAULT_PROTOCOLS: readonly string[] = ['h1', 'h2'];

/** Schema of a list of protocols. */
export const PROTOCOLS = {
	type: 'array',
	minItems: 1,
	uniqueItems: true,
	items: { enum: ['h1', 'h2', 'h2c'] },
};

/** `settings.servers[].protocols`. */
export const protocols: ServerOption = {
	name: 'protocols',
	usage: 'protocols h1|h2|h2c…',
	summary: 'Versions of HTTP: `h1`, `h2` over TLS, `h2c` without it by prior knowledge; h1 and h2 if left out.',
	documentation: [
		'Over TLS the client chooses among `h1` and `h2`; one of them alone refuses the handshake of clients that have the',
		'other only. A listener without TLS speaks `h1`, `h2c`, or both: then the first bytes of a connection decide, and',
		'`Upgrade: h2c` is ignored (RFC 9113). Where the list names nothing for such a listener it speaks HTTP/1.1; a listener',
		'of HTTPS sites with `h2c` alone is an error.',
		'HTTP/3 is not supported by this build.',
	],
	lower: (line, args, { server }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, protocols.usage)) return;
		const chosen = lowerProtocols(args, cx);
		if (chosen.length > 0) server.protocols = chosen;
	},
	schema: {
		protocols: {
			...PROTOCOLS,
			default: ['h1', 'h2'],
			description: 'Versions of HTTP: h1, h2 over TLS, h2c without it.',
		},
	},
};

/** The protocols that words name; reports those that are none, come twice, or are of a later build. */
export function lowerProtocols(args: readonly Word[], cx: LowerContext): string[] {
	const chosen: string[] = [];
	for (const { text, span } of args) {
		if (!KNOWN.includes(text)) {
			const message = `unknown protocol '${text}': expected h1, h2, h2c, or h3`;
			cx.problem('error', 'servers/protocol', span, message, { hint: 'Write some of: h1, h2, h2c.' });
		} else if (chosen.includes(text)) {
			cx.problem('error', 'servers/protocol', span, `protocol ${text} specified more than once`, {
				hint: 'Name each protocol once.',
			});
		} else if (text === 'h3') {
			cx.problem('error', 'option/unavailable', span, 'HTTP/3 (`h3`) is not supported by this build yet.', {
				hint: 'Leave it out: h1 and h2 are served over TLS, h2c without it.',
			});
		} else chosen.push(text);
	}
	return chosen;
}
