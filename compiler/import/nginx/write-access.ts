/** Translates access control: `limit_req`, `limit_conn`, `allow` and `deny`, `auth_basic`, `auth_request` and `satisfy`. */
import { translateAddressRules } from './conditions.ts';
import { quoteText, word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, translateText, type Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { translateOrKeep } from './write-rewrites.ts';
import { upstreamAddress } from './write-upstream.ts';

/**
 * Writes the access rules of a scope. Returns true if they refuse every request. If a rule cannot be translated, access is denied,
 * so that an import never opens what was closed.
 */
export function writeAccess(scope: Scope, cx: ServerContext, variables: Variables): boolean {
	const { out } = cx;
	for (const directive of scope.directivesIn('limit_req'))
		translateOrKeep(directive, out, () => writeRateLimit(directive, scope, cx, variables));
	for (const directive of scope.directivesIn('limit_conn'))
		translateOrKeep(directive, out, () => writeConcurrencyLimit(directive, scope, cx, variables));
	for (const name of ['limit_req_status', 'limit_req_dry_run', 'limit_conn_status', 'limit_conn_dry_run'])
		for (const directive of scope.directivesIn(name)) out.countTranslated(directive);
	const rules = scope.directivesIn('access');
	let allowedCondition: string | boolean;
	try {
		allowedCondition = translateAddressRules(rules, cx.address.matcher);
		for (const rule of rules) out.countTranslated(rule);
	} catch (error) {
		if (!(error instanceof Untranslatable)) throw error;
		for (const rule of rules) out.keepAsComment(rule, `${error.message}; access is denied`);
		allowedCondition = false;
	}
	const satisfyDirective = scope.lastDirective('satisfy');
	if (satisfyDirective) out.countTranslated(satisfyDirective);
	const basicAuth = scope.lastDirective('auth_basic');
	const isBasicAuthOff = basicAuth === undefined || basicAuth.args[0] === 'off';
	if (basicAuth && isBasicAuthOff) out.countTranslated(basicAuth);
	const authRequest = scope.lastDirective('auth_request');
	const asksOtherServer = authRequest !== undefined && authRequest.args[0] !== 'off';
	if (authRequest && !asksOtherServer) out.countTranslated(authRequest);
	const writeRefusal = (): void => out.writeLine('error 403');
	const writeAuthentication = (): boolean => {
		const isWritten =
			(isBasicAuthOff || writeBasicAuth(basicAuth!, scope, cx)) &&
			(!asksOtherServer || writeAuthRequest(authRequest!, scope, cx));
		if (!isWritten) writeRefusal();
		return !isWritten;
	};
	if (satisfyDirective?.args[0] === 'any' && rules.length > 0 && (asksOtherServer || !isBasicAuthOff)) {
		if (allowedCondition === true) return false;
		if (allowedCondition === false) return writeAuthentication();
		out.writeBlock(`when ${negateExpression(allowedCondition)}`, () => void writeAuthentication());
		return false;
	}
	if (allowedCondition === false) {
		writeRefusal();
		return true;
	}
	if (allowedCondition !== true) out.writeBlock(`when ${negateExpression(allowedCondition)}`, writeRefusal);
	return writeAuthentication();
}

function negateExpression(expression: string): string {
	if (/ (?:and|or) /.test(expression)) return `not ( ${expression} )`;
	return expression.startsWith('not ') ? expression.slice(4) : `not ${expression}`;
}

/** Translates `auth_basic`. Returns false if it cannot be translated; access must then be denied. */
function writeBasicAuth(auth: NginxDirective, scope: Scope, { out }: ServerContext): boolean {
	const [realm = ''] = auth.args;
	const userFileDirective = scope.lastDirective('auth_basic_user_file');
	const [userFile = ''] = userFileDirective?.args ?? [];
	if (!userFileDirective || hasVariable(realm) || /[${}]/.test(userFile) || userFile === '') {
		const reason = userFileDirective
			? 'a realm or a file that depends on the request has no counterpart'
			: 'no `auth_basic_user_file` holds here';
		out.keepAsComment(auth, `${reason}; access is denied`);
		if (userFileDirective) out.keepAsComment(userFileDirective, 'see `auth_basic`');
		return false;
	}
	out.countTranslated(userFileDirective);
	out.countTranslated(auth);
	const isUsableRealm = /^[ -z|~]+$/.test(realm);
	const head = isUsableRealm ? `basic_auth bcrypt ${quoteText(realm)}` : 'basic_auth';
	out.writeBlock(head, () => out.writeLine(`htpasswd ${word(userFile)}`));
	if (!isUsableRealm) out.keepInstead(auth, 'a realm is printable ASCII without braces: the default one is used');
	return true;
}

/**
 * Translates `auth_request`, which asks another server for permission. Returns false if it cannot be translated; access must then
 * be denied.
 */
function writeAuthRequest(authRequest: NginxDirective, scope: Scope, cx: ServerContext): boolean {
	const { out } = cx;
	return translateOrKeep(authRequest, out, () => {
		const location = cx.findExactLocation(authRequest.args[0] ?? '');
		const proxyPass = location?.block?.find(({ name }) => name === 'proxy_pass');
		const [, host, uri] = /^http:\/\/([^/$]+)(\/[^$]*)?$/.exec(proxyPass?.args[0] ?? '') ?? [];
		if (host === undefined)
			throw new Untranslatable(
				'only an exact location with a `proxy_pass` to a fixed address is asked; access is denied',
			);
		const locationScope = new Scope(cx.scope, location!.block!);
		const address = cx.pools.has(host) ? `upstream://${cx.pools.variantName(host, [], false)}` : upstreamAddress(host);
		out.writeBlock(`forward_auth ${word(address)}`, () => {
			out.writeLine(`uri ${word(uri ?? authRequest.args[0]!)}`);
			for (const field of locationScope.directivesIn('proxy_set_header')) {
				const [name = '', value = ''] = field.args;
				if (/^(?:content-length|host|connection)$/i.test(name)) out.countTranslated(field);
				else
					translateOrKeep(field, out, () =>
						out.writeLine(`header_up ${name} ${word(translateText(value, cx.variables))}`),
					);
			}
			for (const setDirective of scope.directivesIn('auth_request_set')) {
				const name = /^\$upstream_http_(\w+)$/.exec(setDirective.args[1] ?? '')?.[1];
				if (name === undefined) out.keepAsComment(setDirective, 'only fields of the answer are copied');
				else {
					out.countTranslated(setDirective);
					out.writeLine(`copy_headers ${name.replaceAll('_', '-')}`);
				}
			}
			out.writeLine('@refused status 401 403');
			out.writeBlock('handle_response @refused', () => out.writeLine('error "refused" {rp.status_code}'));
			out.writeLine('@unknown status 1xx 3xx 4xx 5xx');
			out.writeBlock('handle_response @unknown', () => out.writeLine('error 500'));
		});
	});
}

function writeRateLimit(directive: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const optionValue = (name: string): string | undefined =>
		directive.args.find(arg => arg.startsWith(`${name}=`))?.slice(name.length + 1);
	const zoneName = optionValue('zone') ?? '';
	const zone = cx.zones.get(zoneName);
	const [, rateCount, unit] =
		/^(\d+)r\/([sm])$/.exec(zone?.args.find(arg => arg.startsWith('rate='))?.slice(5) ?? '') ?? [];
	if (!zone || rateCount === undefined) throw new Untranslatable('its zone is not defined');
	const burstSize = Number(optionValue('burst') ?? 0);
	const immediateBurst = directive.args.includes('nodelay')
		? burstSize
		: Math.min(burstSize, Number(optionValue('delay') ?? 0));
	const delaySeconds = ((burstSize - immediateBurst) * (unit === 's' ? 1 : 60)) / Number(rateCount);
	out.countTranslated(zone);
	out.writeBlock(`rate_limit ${word(zoneName)} ${rateCount} per 1${unit}`, () => {
		writeKey(zone.args[0] ?? '', cx, variables);
		out.writeLine(`burst ${immediateBurst + 1}`);
		if (delaySeconds > 0) out.writeLine(`delay ${Math.round(delaySeconds * 1000)}ms`);
		if (scope.lastArgument('limit_req_dry_run') === 'on') out.writeLine('dry_run');
	});
	if (scope.lastArgument('limit_req_status') !== '429')
		cx.head.addLine('# Requests beyond a limit of `limit_req` are answered with 429, not with 503.');
}

function writeConcurrencyLimit(directive: NginxDirective, scope: Scope, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const [zoneName = '', count = ''] = directive.args;
	const zone = cx.zones.get(zoneName);
	if (zone?.name !== 'limit_conn_zone' || !/^\d+$/.test(count)) throw new Untranslatable('its zone is not defined');
	const status = scope.lastArgument('limit_conn_status') ?? '503';
	out.countTranslated(zone);
	out.writeBlock(`limit_concurrent ${word(zoneName)} ${count}`, () => {
		writeKey(zone.args[0] ?? '', cx, variables);
		if (status === '429') out.writeLine('status 429');
		if (scope.lastArgument('limit_conn_dry_run') === 'on') out.writeLine('dry_run');
	});
	if (status !== '429' && status !== '503')
		cx.head.addLine('# Requests beyond a limit of `limit_conn` are answered with 503, not with another status.');
}

/** Writes the lines that set the key by which a limit counts requests. */
function writeKey(key: string, { out }: ServerContext, variables: Variables): void {
	if (key === '$binary_remote_addr' || key === '$remote_addr') {
		out.writeLine('ipv6_prefix 128');
		return;
	}
	const value = translateText(key, variables);
	out.writeLine(`key ${word(value)}`);
	// nginx does not count requests with an empty key.
	if (/^\{[^{}]+\}$/.test(value)) out.writeLine(`match not vars ${value} ""`);
}
