/** Translates `mirror`. In nginx, an internal location sends the copies to another server. */
import { word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, sizeOf, type Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { writeField } from './write-proxy.ts';
import { translateOrKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/** Directives that are translated in a location that only sends copies. A location with any other directive is not translated. */
const MIRROR_DIRECTIVES: ReadonlySet<string> = new Set([
	'internal',
	'proxy_pass',
	'proxy_set_header',
	'proxy_pass_request_body',
]);

/** Writes the mirrors of a scope. Copies have the path and query that the client sent. */
export function writeMirrors(scope: Scope, cx: ServerContext, variables: Variables): void {
	const mirrors = scope.directivesIn('mirror');
	const bodyDirective = scope.lastDirective('mirror_request_body');
	let isAnyWritten = false;
	for (const mirror of mirrors) {
		if (mirror.args[0] === 'off') cx.out.countTranslated(mirror);
		else
			isAnyWritten =
				translateOrKeep(mirror, cx.out, () => writeMirror(mirror, bodyDirective, scope, cx, variables)) || isAnyWritten;
	}
	if (!bodyDirective) return;
	if (isAnyWritten) cx.out.countTranslated(bodyDirective);
	else if (mirrors.length > 0) cx.out.keepAsComment(bodyDirective, 'no copy is sent');
}

function writeMirror(
	{ args: [path = ''] }: NginxDirective,
	bodyDirective: NginxDirective | undefined,
	scope: Scope,
	cx: ServerContext,
	variables: Variables,
): void {
	const { out, pools } = cx;
	const block = cx.findExactLocation(path)?.block;
	if (!block) throw new Untranslatable('the copies are not sent by a location for exactly this path');
	const unsupportedDirective = block.find(({ name }) => !MIRROR_DIRECTIVES.has(name));
	if (unsupportedDirective)
		throw new Untranslatable(`the location that sends the copies has \`${unsupportedDirective.name}\``);
	const proxyPasses = block.filter(({ name }) => name === 'proxy_pass');
	const [, scheme, host = ''] =
		/^(https?):\/\/(\[[^\]]*\](?::\d+)?|[^/$[\]]+)\$request_uri$/.exec(proxyPasses[0]?.args[0] ?? '') ?? [];
	if (proxyPasses.length !== 1 || scheme === undefined || hasVariable(host)) {
		throw new Untranslatable('only copies that `proxy_pass http://SERVER$request_uri` sends have a counterpart');
	}
	const locationScope = new Scope(cx.scope, block);
	const fieldDirectives = locationScope
		.directivesIn('proxy_set_header')
		.filter(({ args }) => args[0]?.toLowerCase() !== 'content-length');
	const isTls = scheme === 'https';
	const address = upstreamAddress(host, isTls ? 443 : 80);
	const mirrorTarget = pools.has(host)
		? `upstream://${pools.variantName(host, [], isTls)}`
		: isTls
			? `https://${address}`
			: address;
	const bodyLimitLine = bodySetting(bodyDirective, locationScope, scope);
	out.writeBlock(`mirror ${word(mirrorTarget)}`, () => {
		out.writeLine('rewrite {orig_uri}');
		if (!fieldDirectives.some(({ args }) => args[0]?.toLowerCase() === 'host'))
			out.writeLine(`header_up Host ${word(host)}`);
		for (const field of fieldDirectives) writeField(field, cx, variables);
		if (bodyLimitLine !== undefined) out.writeLine(bodyLimitLine);
	});
}

/** Returns the line that limits the bodies of copies; undefined if the default applies. nginx copies each body that it accepts. */
function bodySetting(
	bodyDirective: NginxDirective | undefined,
	locationScope: Scope,
	scope: Scope,
): string | undefined {
	if (bodyDirective?.args[0] === 'off' || locationScope.lastArgument('proxy_pass_request_body') === 'off')
		return 'body off';
	const limit = scope.lastArgument('client_max_body_size');
	if (limit === undefined || limit === '1m') return undefined;
	return limit === '0' ? 'body 64MiB' : `body ${sizeOf(limit)}`;
}
