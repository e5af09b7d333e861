/** Runs the lint rules over a configuration that compiles. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { CompileResult } from '../compiler.ts';
import { ConcealedValues } from '../diagnostics/concealed-values.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../diagnostics/sort-diagnostics.ts';
import { withWholePlaces } from '../diagnostics/whole-places.ts';
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Document } from '../document/document.ts';
import { DryRun, type DryRunEnvironment } from '../dry-run/dry-run.ts';
import { ReadError, type Reader } from '../source/reader.ts';
import { Source } from '../source/source.ts';
import { lintRules } from './index.ts';
import { LintContext, type LintSubject } from './inspection/lint-context.ts';
import type { LintRule } from './inspection/lint-rule.ts';
import { type LintScope, LintScopes } from './inspection/lint-scope.ts';
import { LintMemory } from './lint-memory.ts';
import { snippetUnused } from './rules/snippet-unused.ts';
import { SilencingComments } from './silencing-comments.ts';

/** A compiled configuration, with the dependencies that rules need. */
export interface LintInput {
	readonly input: ConfigInput;
	readonly compiled: Pick<CompileResult, 'diagnostics' | 'locate' | 'files' | 'parsedText'> & {
		readonly document: Document;
		readonly plan: Plan;
	};
	readonly reader: Reader;
	readonly deps: DryRunEnvironment;
	/** Returns the dry run that rules use. By default, a new one is created. */
	readonly dryRunFor?: (plan: Plan) => DryRun;
	/** Which rules run. `usual` selects only the rules that `svc validate` checks without `--lint`. Default: `all`. */
	readonly ruleSelection?: 'all' | 'usual';
	/** Knows where rules found nothing in earlier results of the same compiler session. */
	readonly memory?: LintMemory;
}

/** Returns the findings of the compiler and of the rules, sorted by place, without those that comments silence. Opens no socket. */
export async function lint({
	input,
	compiled,
	reader,
	deps,
	dryRunFor = plan => new DryRun(plan, deps),
	ruleSelection = 'all',
	memory = new LintMemory(),
}: LintInput): Promise<Diagnostic[]> {
	const { document, plan, diagnostics, locate, parsedText } = compiled;
	const findings: Diagnostic[] = [...diagnostics];
	const selectedRules = lintRules.filter(
		rule =>
			ruleSelection === 'all' || rule.alwaysChecked || (rule.checkedForConfigfile && input.format === 'configfile'),
	);
	if (parsedText && selectedRules.includes(snippetUnused)) {
		const unusedNames = parsedText.unusedNames().filter(({ code }) => code === snippetUnused.name);
		findings.push(...unusedNames.map(withWholePlaces));
	}
	const sources = readSources(input, compiled.files, reader);
	let dryRun: DryRun | undefined;
	const subject: LintSubject = {
		diagnostics,
		input,
		document,
		plan,
		sources,
		reader,
		formatMainFile: text => memory.formatMemory.format(text),
		locate,
		dryRun: request => {
			dryRun ??= dryRunFor(plan);
			return dryRun.run(request);
		},
	};
	memory.beginInspection(document, plan);
	const scopes = new LintScopes(document, parsedText, memory.walkSite);
	for (const rule of selectedRules) {
		if (!rule.check) continue;
		for (const scope of scopesOf(rule, document, scopes, memory)) {
			const countBefore = findings.length;
			const cx = new LintContext(subject, scope, rule, findings);
			const checkPromise = rule.check(cx);
			if (checkPromise) await checkPromise;
			if (findings.length === countBefore && !cx.mustInspectAgain) memory.markClean(rule, scope.site);
		}
	}
	const sortedFindings = sortDiagnostics(findings);
	if (input.format === 'json') return sortedFindings;
	const silencingComments = new SilencingComments(input.format);
	for (const source of sources) silencingComments.addFile(source);
	const unsilencedFindings = silencingComments.filter(sortedFindings);
	if (ruleSelection === 'all') {
		const ruleNames = lintRules.map(({ name }) => name);
		const compilerCodes = new Set(diagnostics.map(({ code }) => code));
		silencingComments.reportUnused([...ruleNames, ...compilerCodes], finding => unsilencedFindings.push(finding));
	}
	const concealedValues = new ConcealedValues();
	readVariables(sources, concealedValues.watchedReader(reader));
	return sortDiagnostics(unsilencedFindings).map(finding => concealedValues.conceal(finding));
}

/** Yields the parts of the configuration that a rule must inspect. */
function* scopesOf(
	rule: LintRule,
	{ sites = [] }: Document,
	scopes: LintScopes,
	memory: LintMemory,
): Generator<LintScope> {
	if (rule.dependsOn !== 'site' && rule.dependsOn !== 'served site') {
		if (!memory.isClean(rule, undefined)) yield scopes.wholeScope;
		return;
	}
	yield scopes.outsideScope;
	for (const [index, site] of sites.entries()) if (!memory.isClean(rule, site)) yield scopes.siteScope(site, index);
}

/** Returns the contents of all configuration files; for JSON, there are none. */
function readSources(input: ConfigInput, files: readonly string[], reader: Reader): readonly Source[] {
	if (input.format === 'json') return [];
	const sources = [new Source({ name: input.name, text: input.text, path: input.path })];
	for (const path of files) {
		if (path === input.path) continue;
		try {
			sources.push(new Source({ name: path, text: reader.readText(path), path }));
		} catch (error) {
			// A file that is missing by now is not a mistake: it existed during compilation, and its contents have been compiled.
			if (!(error instanceof ReadError)) throw error;
		}
	}
	return sources;
}

/**
 * Reads the environment variables that the files use, so that `watchingReader` learns their values, which are then concealed in
 * messages.
 */
function readVariables(sources: readonly Source[], watchingReader: Reader): void {
	for (const { text } of sources) for (const [, name] of text.matchAll(/\{\$([^{}:\s]+)/g)) watchingReader.env(name!);
}
