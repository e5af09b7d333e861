/** Translates the directives with which a location answers requests: access rules, and then a proxy, PHP or files. */
import { translateCondition } from './conditions.ts';
import { word } from './configfile-writer.ts';
import type { ServerContext } from './import-context.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { hasVariable, translateText, type Variables } from './nginx-values.ts';
import { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { writeAccess } from './write-access.ts';
import { writeCache } from './write-cache.ts';
import { textTypeOf, writeBodyLimit, writeCompression, writeFields } from './write-headers.ts';
import { writeMirrors } from './write-mirror.ts';
import { type Place, writePhp, writeProxy } from './write-proxy.ts';
import { writeResponseRate } from './write-rate.ts';
import { writeReplacements } from './write-replacements.ts';
import { choosesContent, mayLeave, translateOrKeep, writeRewrites } from './write-rewrites.ts';

/** The reasons why some directives that produce content have no counterpart, by directive. */
const UNSUPPORTED_CONTENT: { readonly [name: string]: string } = {
	uwsgi_pass: 'the uwsgi protocol is not spoken here: let the application listen with HTTP',
	scgi_pass: 'the SCGI protocol is not spoken here: let the application listen with HTTP',
	memcached_pass: 'memcached is not asked here',
	empty_gif: 'write a file',
	dav_methods: 'files are only read here',
	js_content: 'scripts have no counterpart',
	content_by_lua_block: 'scripts have no counterpart',
	perl: 'scripts have no counterpart',
};

/**
 * Translates everything in a location, from its rewrites to its content. `scope` is the scope of `block`, and `outerScope` the
 * scope around it.
 */
export function writeLocationBody(
	block: readonly NginxDirective[],
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
	outerScope: Scope,
): void {
	const { out } = cx;
	for (const directive of block) {
		const reason = Object.hasOwn(UNSUPPORTED_CONTENT, directive.name) ? UNSUPPORTED_CONTENT[directive.name] : undefined;
		if (reason !== undefined) {
			out.keepAsComment(directive, reason);
			out.writeLine('error 502');
			return;
		}
	}
	const internalDirective = block.find(({ name }) => name === 'internal');
	if (internalDirective) {
		out.countTranslated(internalDirective);
		out.writeBlock('when not vars internal "yes"', () => out.writeLine('error 404'));
	}
	const accessLog = scope.lastDirective('access_log');
	if (accessLog?.args[0] === 'off') {
		out.countTranslated(accessLog);
		if (outerScope.directivesIn('access_log').some(({ args }) => args[0] !== 'off')) out.writeLine('log_skip');
	}
	const root = writeRoot(block, scope, cx, place, variables, outerScope);
	const errorRules = cx.errorRulesName(scope);
	if (errorRules !== undefined) out.writeLine(`vars errors ${errorRules}`);
	else cx.noteEntrySlot(out.slot());
	const tryFiles = block.find(({ name }) => name === 'try_files');
	const mayLeaveToIndex =
		root !== undefined && !block.some(({ name }) => name === 'alias') && mayIndexLeave(block, scope, cx);
	const mayLeaveLocation =
		mayLeave(block) || tryFiles !== undefined || mayLeaveToIndex || block.some(answersWithFields);
	const writeOwnFields = (): void => writeFields(scope, out, variables);
	if (!mayLeaveLocation) writeOwnFields();
	const referers = block.find(({ name }) => name === 'valid_referers');
	if (referers) out.countTranslated(referers);
	const isAnswered = writeRewrites(block, {
		out,
		place: 'location',
		condition: { variables, root, referers: referers?.args, unusedName: kind => out.unusedName(kind) },
		chooseAgain: cx.chooseLocation,
		beforeAnswer: mayLeaveLocation ? writeOwnFields : () => {},
		beforeAnswerOf: inner => writeFields(new Scope(scope, inner), out, variables),
		beforeText: () => writeReplacements(scope, cx, variables),
		textType: textTypeOf(scope, out),
	});
	if (isAnswered) {
		const rules = block.filter(({ name }) => name === 'allow' || name === 'deny' || name.startsWith('auth_'));
		for (const rule of rules) out.keepAsComment(rule, 'the `return` answers before access is checked');
		return;
	}
	writeLimitExcept(block, scope, cx, variables);
	const isRewritten = block.some(({ name, args }) => name === 'rewrite' && args[2] === 'break');
	const ifDirectives = block.filter(choosesContent).toReversed();
	let isFirst = true;
	for (const ifDirective of ifDirectives) {
		translateOrKeep(ifDirective, out, () => {
			const condition = translateCondition(ifDirective.args, {
				variables,
				root,
				referers: referers?.args,
				unusedName: kind => out.unusedName(kind),
			});
			const innerDirectives = ifDirective.block!.filter(
				({ name }) => !['if', 'return', 'rewrite', 'set', 'break'].includes(name),
			);
			const contentDirectives = innerDirectives.some(({ name }) => CONTENT_DIRECTIVES.has(name))
				? []
				: block.filter(({ name }) => CONTENT_DIRECTIVES.has(name));
			const innerScope = new Scope(scope, innerDirectives);
			out.writeBranch(condition.expression, isFirst, () => {
				writeRoot(innerDirectives, innerScope, cx, place, condition.variables, scope);
				if (mayLeaveLocation || innerDirectives.some(({ name }) => name === 'add_header' || name === 'expires'))
					writeFields(innerScope, out, condition.variables);
				writeAnswer(
					[...contentDirectives, ...innerDirectives],
					innerScope,
					cx,
					place,
					condition.variables,
					isRewritten,
					root,
				);
			});
			isFirst = false;
		});
	}
	const writeUnconditional = (): void => {
		if ((tryFiles || mayLeaveToIndex) && writeAccess(scope, cx, variables)) return;
		if (tryFiles) translateOrKeep(tryFiles, out, () => writeTryFiles(tryFiles, cx, variables));
		if (mayLeaveToIndex) writeIndexRedirect(scope, cx);
		if (mayLeaveLocation) writeOwnFields();
		writeAnswer(block, scope, cx, place, variables, isRewritten, root, tryFiles !== undefined || mayLeaveToIndex);
	};
	if (isFirst) writeUnconditional();
	else out.writeBranch(undefined, false, writeUnconditional);
}

const CONTENT_DIRECTIVES: ReadonlySet<string> = new Set([
	'proxy_pass',
	'grpc_pass',
	'fastcgi_pass',
	'alias',
	'stub_status',
]);

function writeAnswer(
	block: readonly NginxDirective[],
	scope: Scope,
	cx: ServerContext,
	place: Place,
	outerVariables: Variables,
	isRewritten: boolean,
	root: string | undefined,
	isAccessWritten = false,
): void {
	const { out } = cx;
	if (!isAccessWritten && writeAccess(scope, cx, outerVariables)) return;
	const isAuthenticated = (scope.lastArgument('auth_basic') ?? 'off') !== 'off';
	const variables = isAuthenticated ? outerVariables : outerVariables.withoutUser();
	writeMirrors(scope, cx, variables);
	writeResponseRate(scope, out);
	if (cx.locationsCompress) writeCompression(scope, out);
	writeReplacements(scope, cx, variables);
	const stubStatus = block.find(({ name }) => name === 'stub_status');
	if (stubStatus) {
		out.keepAsComment(stubStatus, 'answered by `metrics`: such numbers, but in the format of Prometheus');
		out.writeLine('metrics');
		return;
	}
	const proxyPass = block.find(({ name }) => name === 'proxy_pass' || name === 'grpc_pass');
	const fastcgiPass = block.find(({ name }) => name === 'fastcgi_pass');
	if (proxyPass || fastcgiPass) {
		writeBodyLimit(scope, out);
		writeCache(proxyPass ? 'proxy' : 'fastcgi', scope, cx, variables);
		if (proxyPass) writeProxy(proxyPass, scope, cx, place, variables, isRewritten);
		else writePhp(fastcgiPass!, scope, cx, variables);
		return;
	}
	writeFiles(block, scope, cx, root);
}

/** Directives of a location that answer every request without reading a file below `root`. */
const NO_FILES_DIRECTIVES: ReadonlySet<string> = new Set(['return', 'proxy_pass', 'grpc_pass', 'stub_status']);

/**
 * Translates the `root` or `alias` of a location. Omits a `root` that the location only inherits, or that nothing in it uses.
 * Returns the folder of `root` as written in nginx, without a slash at the end; undefined if there is none or if `alias` is used.
 */
function writeRoot(
	block: readonly NginxDirective[],
	scope: Scope,
	cx: ServerContext,
	place: Place,
	variables: Variables,
	outerScope: Scope,
): string | undefined {
	const { out } = cx;
	const alias = block.find(({ name }) => name === 'alias');
	if (alias) {
		if (!translateOrKeep(alias, out, () => writeAlias(alias.args[0] ?? '', cx, place, variables)))
			out.writeLine('error 500');
		return undefined;
	}
	const root = scope.lastDirective('root');
	if (!root) return undefined;
	const differsFromOuter =
		root !== outerScope.lastDirective('root') ||
		cx.directives.some(directive => directive.name === 'location' && hasRoot(directive));
	const readsFiles =
		block.some(({ name }) => name === 'try_files' || name === 'if' || name === 'fastcgi_pass') ||
		!block.some(({ name }) => NO_FILES_DIRECTIVES.has(name));
	if (differsFromOuter && readsFiles)
		translateOrKeep(root, out, () => out.writeLine(`root ${word(translateText(root.args[0] ?? '', variables))}`));
	return root.args[0]?.replace(/\/$/, '');
}

function hasRoot(location: NginxDirective): boolean {
	return location.block!.some(
		directive => directive.name === 'root' || directive.name === 'alias' || (directive.block && hasRoot(directive)),
	);
}

function writeAlias(folder: string, { out }: ServerContext, place: Place, variables: Variables): void {
	if (place.kind === 'prefix' && !hasVariable(folder)) {
		const prefix = place.path.replace(/\/$/, '');
		if (prefix !== '') out.writeLine(`uri strip_prefix ${word(prefix)}`);
		out.writeLine(`root ${word(folder)}`);
	} else if (place.kind === 'exact' && !hasVariable(folder)) {
		const splitIndex = folder.replace(/\/$/, '').lastIndexOf('/');
		out.writeLine(`rewrite ${word(folder.slice(splitIndex))}`);
		out.writeLine(`root ${word(splitIndex === 0 ? '/' : folder.slice(0, splitIndex))}`);
	} else if (place.kind === 'regexp') {
		const firstVariable = folder.indexOf('$');
		const splitIndex = folder.lastIndexOf('/', firstVariable === -1 ? undefined : firstVariable);
		if (splitIndex < 1) throw new Untranslatable('the folder of `alias` is not fixed');
		out.writeLine(`rewrite ${word(translateText(folder.slice(splitIndex), variables))}`);
		out.writeLine(`root ${word(folder.slice(0, splitIndex))}`);
	} else throw new Untranslatable('`alias` is translated only in a location with a path');
}

function writeLimitExcept(
	block: readonly NginxDirective[],
	scope: Scope,
	cx: ServerContext,
	variables: Variables,
): void {
	const { out } = cx;
	for (const limitExcept of block.filter(({ name, block }) => name === 'limit_except' && block)) {
		out.countTranslated(limitExcept);
		const methods = limitExcept.args.includes('GET') ? [...limitExcept.args, 'HEAD'] : limitExcept.args;
		out.writeBlock(`when not method ${[...new Set(methods)].join(' ')}`, () => {
			const accessLines = out.capture(() => void writeAccess(new Scope(scope, limitExcept.block!), cx, variables));
			if (accessLines.length > 0) out.append(accessLines);
			else out.writeLine('# Every client may use other methods.');
		});
	}
}

/** Translates `try_files`. A request for which no file exists is handled by the lines that are written first. */
function writeTryFiles(directive: NginxDirective, cx: ServerContext, variables: Variables): void {
	const { out } = cx;
	const fallbackTarget = directive.args.at(-1) ?? '';
	const files = directive.args.slice(0, -1).map(text => translateFile(text, variables));
	if (files.some(file => !/^(?:\/|\{path\}|\{map_)/.test(file)))
		throw new Untranslatable('a file is not a path below the root');
	const writeFallback = (): void => {
		if (fallbackTarget.startsWith('@')) {
			const route = cx.routeOf(fallbackTarget);
			if (cx.hasInternalLocation) out.writeLine('vars internal "yes"');
			out.writeLine(`invoke ${route}`);
		} else if (/^=\d{3}$/.test(fallbackTarget)) {
			const status = Number(fallbackTarget.slice(1));
			out.writeLine(status < 400 ? `respond ${status}` : `error ${status}`);
		} else {
			const value = translateText(fallbackTarget, variables);
			out.writeLine(`rewrite ${word(value.startsWith('/') || value.startsWith('{path}') ? value : `/${value}`)}`);
			cx.chooseLocation();
		}
	};
	if (files.length === 0) writeFallback();
	else out.writeBlock(`when not file ${files.map(word).join(' ')}`, writeFallback);
	const rewrittenFiles = files.filter(file => file !== '{path}' && file !== '{path}/');
	if (rewrittenFiles.length === 0) return;
	if (rewrittenFiles.length === files.length) out.writeLine(`try_files ${rewrittenFiles.map(word).join(' ')}`);
	else
		out.writeBlock(`when not file ${files.filter(file => !rewrittenFiles.includes(file)).join(' ')}`, () =>
			out.writeLine(`try_files ${rewrittenFiles.map(word).join(' ')}`),
		);
}

function translateFile(text: string, variables: Variables): string {
	return translateText(text.replace('$fastcgi_script_name', '$uri'), variables);
}

const DEFAULT_INDEX_NAMES = ['index.html'];

/**
 * Reports whether nginx may answer a request for a folder in a different location, because the path of the folder's index file
 * belongs to that location.
 */
function mayIndexLeave(block: readonly NginxDirective[], scope: Scope, cx: ServerContext): boolean {
	if (block.some(({ name }) => CONTENT_DIRECTIVES.has(name) || name === 'return')) return false;
	const names = scope.lastDirective('index')?.args ?? DEFAULT_INDEX_NAMES;
	return names.some(name =>
		['/', '/x/'].some(folder => cx.mayChooseOtherLocation(`${folder}${name.replace(/^\//, '')}`, block)),
	);
}

function indexNames(scope: Scope): string[] {
	const names = scope.lastDirective('index')?.args ?? DEFAULT_INDEX_NAMES;
	return names.filter(name => !hasVariable(name)).map(name => name.replace(/^\//, ''));
}

/** Writes the lines that pass a request for a folder with an index file to the location for the path of that file. */
function writeIndexRedirect(scope: Scope, cx: ServerContext): void {
	const { out } = cx;
	out.writeBlock(
		`when path */ and file ${indexNames(scope)
			.map(name => word(`{path}/${name}`))
			.join(' ')}`,
		() => {
			out.writeLine('rewrite {file_match.relative}');
			cx.chooseLocation();
		},
	);
}

/** Reports whether a directive is an `if` that answers requests and sets header fields of its own. */
function answersWithFields({ name, block }: NginxDirective): boolean {
	return (
		name === 'if' &&
		block!.some(inner => inner.name === 'return') &&
		block!.some(inner => inner.name === 'add_header' || inner.name === 'expires')
	);
}

function writeFiles(block: readonly NginxDirective[], scope: Scope, cx: ServerContext, root: string | undefined): void {
	const { out } = cx;
	const isAlias = block.some(({ name }) => name === 'alias');
	if (root === undefined && !isAlias) {
		out.writeLine('# No `root` holds here. nginx looks into a folder of its own, `html`.');
		out.writeLine('error 404');
		return;
	}
	const indexDirective = scope.lastDirective('index');
	if (indexDirective) out.countTranslated(indexDirective);
	const indexFileNames = indexNames(scope);
	const autoindex = scope.lastDirective('autoindex');
	if (autoindex) out.countTranslated(autoindex);
	const gzipStatic = scope.lastDirective('gzip_static');
	if (gzipStatic) out.countTranslated(gzipStatic);
	const head = autoindex?.args[0] === 'on' ? 'file_server browse' : 'file_server';
	const lines = indexDirective ? [`index ${indexFileNames.map(word).join(' ')}`] : ['index index.html'];
	if (gzipStatic?.args[0] === 'on') lines.push('precompressed gzip');
	out.writeBlock(head, () => {
		for (const line of lines) out.writeLine(line);
	});
}
