/** `php_fastcgi`: serves a PHP site with a front controller, in one line. */
import type { Matcher, Step } from '../../../document/document.ts';
import type { Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import { COMPATIBLE_FALLBACK_POLICY, type FileMatcher, lowerTryPolicy } from '../../matchers/file.ts';
import { type FastcgiDraft, fastcgiOptions } from '../reverse-proxy/lower-fastcgi-transport.ts';
import { lowerProxy } from '../reverse-proxy/lower-proxy.ts';

/** Lowers the path of a folder on the application's side, which is not relative to a folder of this machine. */
function lowerAppRoot(word: Word, cx: LowerContext): string | undefined {
	if (/^[/{]/.test(word.text)) return cx.template(word);
	cx.problem('error', 'fastcgi/app-root', word.span, `\`${word.text}\` is not an absolute path.`, {
		hint: 'Write the path of the folder as the application sees it, such as `/var/www/html`.',
	});
	return undefined;
}

const USAGE = 'php_fastcgi [matcher] <upstream>… [{ … }]';

/** Syntax: `php_fastcgi [matcher] <upstream>… { … }`. */
export const phpFastcgi = handlerDirective<Step>({
	kind: 'handler',
	id: '',
	names: { configfile: ['php_fastcgi'], compatfile: ['php_fastcgi'] },
	usage: USAGE,
	summary: 'Serves a PHP site through FastCGI: front controller, folder indexes, PATH_INFO.',
	documentation: [
		'Equivalent to these directives in a group of their own:',
		'',
		'```compatfile',
		'route {',
		'	@canonicalPath {',
		'		file {path}/index.php',
		'		not path */',
		'	}',
		'	redir @canonicalPath {orig_path}/{orig_?query} 308',
		'	@indexFiles file {',
		'		try_files {path} {path}/index.php index.php',
		'		try_policy first_exist_fallback',
		'		split_path .php',
		'	}',
		'	rewrite @indexFiles {file_match.relative}',
		'	@phpFiles path *.php',
		'	reverse_proxy @phpFiles unix//run/php/php-fpm.sock {',
		'		transport fastcgi {',
		'			split .php',
		'		}',
		'	}',
		'}',
		'```',
		'',
		'A request that does not resolve to a script continues with the next directives, usually a `file_server`. A missing script is never',
		'passed on; the front controller is used instead, so an upload named `x.jpg` cannot be executed as `/x.jpg/y.php`.',
		'',
		'| Line | Meaning |',
		'| --- | --- |',
		'| `root PATH` | folder of the scripts; default the variable `root`. In a Compatfile, it means what `app_root` means otherwise |',
		'| `app_root PATH` | the folder of the scripts as the application sees it, perhaps in another container: an absolute path that is only sent to the application, while files are looked up below the root of the site (not in a Compatfile) |',
		'| `split EXT…` | extensions of scripts; default `.php` |',
		'| `env NAME VALUE` | an additional variable; repeatable |',
		'| `index FILE` | the index of folders and front controller; default `index.php`, `off` disables both redirect and rewrite |',
		'| `try_files FILE…` | instead of `{path} {path}/index.php index.php` |',
		'| `try_policy POLICY` | which of these files is selected, as in the matcher `file`; default `first_exist_fallback` if the last one is a script (not in a Compatfile, where the last one must exist) |',
		'| `resolve_root_symlink` | resolves symbolic links in `root` |',
		'| `dial_timeout`, `read_timeout`, `write_timeout` | as in `transport http` |',
		'| `keepalive DURATION` | keeps connections open, each of which occupies a process of the application; default `off` |',
		'| `capture_stderr` | logs what scripts write to standard error: as a warning, or as an error with status 4xx and 5xx |',
		'',
		'All sub-directives of `reverse_proxy` are allowed too.',
		'',
		'Applications need the length of a request body first. A body without `Content-Length` is therefore read into memory before it is',
		'sent: up to 16 MiB (411 if it is longer), and up to 128 MiB of such bodies in the process, divided among its threads, but at',
		'least 32 MiB for each (503 with `Retry-After` beyond that). Bodies with `Content-Length` are streamed.',
		'',
		'```',
		'root /srv/app/public',
		'php_fastcgi unix//run/php/php8.2-fpm.sock {',
		'	env APP_ENV production',
		'	capture_stderr',
		'}',
		'file_server',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 350, keepsPlaces: true },
	lower: (directive, cx) => {
		const { line } = directive;
		const transport: FastcgiDraft = { type: 'fastcgi', split: ['.php'] };
		let indexWord: Word | undefined;
		let fileTemplates: readonly string[] | undefined;
		let tryPolicy: FileMatcher['policy'];
		let appRoot: string | undefined;
		const isCompatfile = cx.dialect === 'compatfile';
		const proxyStep = lowerProxy(
			directive,
			{
				directiveName: 'php_fastcgi',
				usage: USAGE,
				ownPoolSubdirectives: pool => ({
					...fastcgiOptions(transport, pool, cx),
					...(isCompatfile
						? {}
						: {
								app_root: (words, innerLine) => {
									if (cx.noBlock(innerLine) && cx.count(innerLine, words, 1, 1, 'app_root <folder>'))
										appRoot = lowerAppRoot(words[0]!, cx);
								},
							}),
					transport: (_words, innerLine) => {
						const message = '`php_fastcgi` has its own transport.';
						cx.problem('error', 'upstream/transport-twice', innerLine.words[0]!.span, message, {
							hint: 'Write its options, such as `root` and `env`, in the block of `php_fastcgi`.',
						});
					},
				}),
				ownSubdirectives: () => ({
					index: (words, innerLine) => {
						if (cx.noBlock(innerLine) && cx.count(innerLine, words, 1, 1, 'index <file>|off')) indexWord = words[0];
					},
					try_files: (words, innerLine) => {
						if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'try_files <file>…'))
							return;
						fileTemplates = words.map(word => cx.template(word));
					},
					...(isCompatfile
						? {}
						: {
								try_policy: (words, innerLine) => {
									if (cx.noBlock(innerLine) && cx.count(innerLine, words, 1, 1, 'try_policy <policy>'))
										tryPolicy = lowerTryPolicy(words[0]!, cx, 'unknown');
								},
							}),
				}),
				finish: (_fields, pool) => {
					if (appRoot !== undefined && transport.root !== undefined) {
						const message = '`php_fastcgi` has both `root` and `app_root`.';
						cx.problem('error', 'fastcgi/two-roots', directive.name.span, message, {
							hint: 'Keep `app_root`, and write `root` above, as a directive of its own.',
						});
					}
					pool.transport = appRoot === undefined ? transport : { ...transport, root: appRoot };
				},
			},
			cx,
		);
		const scriptExtensions = transport.split ?? [];
		const scriptMatcher: Matcher = { type: 'path', patterns: scriptExtensions.map(extension => `*${extension}`) };
		const steps: Step[] = [];
		if (indexWord?.text !== 'off') {
			const indexName = indexWord ? cx.template(indexWord) : 'index.php';
			const folderIndexPath = `{http.request.uri.path}/${indexName}`;
			const triedFiles = fileTemplates ?? ['{http.request.uri.path}', folderIndexPath, indexName];
			// In a Compatfile, `root` means what `app_root` means in a Configfile: this server does not look up files there.
			const rootField = isCompatfile || transport.root === undefined ? {} : { root: transport.root };
			if (triedFiles.includes(folderIndexPath)) {
				const folderMatcher: Matcher = {
					type: 'all',
					of: [
						{ type: 'file', files: [folderIndexPath], ...rootField },
						{ type: 'not', of: { type: 'path', patterns: ['*/'] } },
					],
				};
				const canonicalTarget = '{http.request.orig_uri.path}/{http.request.orig_uri.prefixed_query}';
				steps.push({ handler: 'redirect', when: folderMatcher, to: canonicalTarget, status: 308 });
			}
			if (/\.php$/i.test(triedFiles.at(-1)!))
				tryPolicy ??= isCompatfile ? COMPATIBLE_FALLBACK_POLICY : 'first_exist_fallback';
			const fileMatcher: Matcher = {
				type: 'file',
				files: triedFiles,
				...(tryPolicy === undefined ? {} : { policy: tryPolicy }),
				split_path: scriptExtensions,
				...rootField,
			};
			steps.push({ handler: 'rewrite_target', when: fileMatcher, to: '{http.matchers.file.relative}' });
		}
		steps.push({ ...proxyStep, when: scriptMatcher });
		return cx.origin({ handler: 'group', pipeline: steps }, line.span);
	},
	schema: { properties: {} },
	compile: undefined,
});
