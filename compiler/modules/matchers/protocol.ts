/** `protocol`: matches the request's protocol and version. */

import { didYouMean } from '../../diagnostics/suggest.ts';
import type { Matcher } from '../../document/document.ts';
import type { Predicate } from '../../exchange/handler.ts';
import { requestMatcher } from '../contract/matcher.ts';

interface ProtocolMatcher extends Matcher {
	readonly type: 'protocol';
	readonly protocol: string;
}

const USAGE = 'protocol http | https | grpc | http/<version>[+]';

/** The versions of HTTP, oldest first: as written in a configuration, and as named in `Exchange.protocol`. */
const HTTP_VERSIONS: readonly (readonly [written: string, name: string])[] = [
	['http/1.0', 'HTTP/1.0'],
	['http/1.1', 'HTTP/1.1'],
	['http/2', 'HTTP/2.0'],
	['http/3', 'HTTP/3.0'],
];

const KNOWN_PROTOCOLS = [
	'http',
	'https',
	'grpc',
	...HTTP_VERSIONS.flatMap(([versionText]) => [versionText, `${versionText}+`]),
];

export const protocol = requestMatcher<ProtocolMatcher>({
	id: 'protocol',
	usage: USAGE,
	summary: 'Matches the protocol of the request.',
	documentation: [
		'`http` and `https` differ by TLS, `grpc` matches by content type. `http/1.0`, `http/1.1`, `http/2` and `http/3` match exactly;',
		'with a `+` appended, that version or a newer one.',
		'',
		'```',
		'@modern protocol http/2+',
		'```',
	].join('\n'),
	probeChanges: ({ protocol }) =>
		protocol === 'grpc'
			? ['application/grpc', undefined].map(type => ({ header: ['Content-Type', type] as const }))
			: protocol.startsWith('http/')
				? (['h1', 'h2', 'h3'] as const).map(version => ({ protocol: version }))
				: [],
	lower: (line, cx) => {
		const args = line.words.slice(1);
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, USAGE)) return undefined;
		const { text, span } = args[0]!;
		if (!KNOWN_PROTOCOLS.includes(text) && cx.dialect === 'configfile') {
			cx.problem('error', 'protocol/unknown', span, `\`${text}\` is not a protocol.`, {
				...didYouMean(args[0]!, KNOWN_PROTOCOLS),
				hint: `Usage: ${USAGE}`,
			});
			return undefined;
		}
		return { type: 'protocol', protocol: text };
	},
	schema: {
		properties: {
			protocol: {
				type: 'string',
				description: '`http`, `https`, `grpc`, or a version such as `http/1.1`; with `+`, that version or newer.',
			},
		},
		required: ['protocol'],
	},
	compile: matcher => compileProtocol(matcher.protocol),
});

/** Compiles a protocol's name to a predicate. An unknown protocol matches nothing. */
function compileProtocol(protocolText: string): Predicate {
	if (protocolText === 'http' || protocolText === 'https') return x => x.request.scheme === protocolText;
	if (protocolText === 'grpc')
		return x => x.request.headers.get('content-type')?.startsWith('application/grpc') ?? false;
	const acceptsNewer = protocolText.endsWith('+');
	const versionText = acceptsNewer ? protocolText.slice(0, -1) : protocolText;
	const versionIndex = HTTP_VERSIONS.findIndex(version => version[0] === versionText);
	if (versionIndex === -1) return () => false;
	const versionNames = HTTP_VERSIONS.slice(versionIndex, acceptsNewer ? undefined : versionIndex + 1).map(
		version => version[1],
	);
	return x => versionNames.includes(x.protocol);
}
