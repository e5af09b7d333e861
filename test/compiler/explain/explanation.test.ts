/** The trace of an explanation: nested matchers, and which handler rewrote, failed or responded. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UNKNOWN_HOST_FACTS } from '../../../compiler/codegen/placeholders/index.ts';
import { compile } from '../../../compiler/compiler.ts';
import type { Matcher } from '../../../compiler/document/document.ts';
import { isRequestUrl, parseRequestUrl } from '../../../compiler/dry-run/dry-run-request.ts';
import { type ExplainedStep, Explainer, type Explanation } from '../../../compiler/explain/explanation.ts';
import { matcherText } from '../../../compiler/explain/matcher-text.ts';
import { renderExplanation } from '../../../compiler/explain/render-explanation.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';

async function explainRequest(text: string, url: string, method = 'GET'): Promise<Explanation> {
	const { plan, locate, diagnostics } = compile(
		{ format: 'configfile', text, name: 'Configfile' },
		diskReader('/', {}),
	);
	if (!plan) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
	const parsed = parseRequestUrl(url);
	if (!isRequestUrl(parsed)) throw new Error(parsed.message);
	const request = { method, url: parsed, headers: [], body: undefined, from: undefined, at: undefined };
	const deps = { facts: UNKNOWN_HOST_FACTS, lease: () => undefined };
	return (await new Explainer({ plan, locate }, deps).explain(request))!.explanation;
}

/** Returns the trace as lines, such as `3 matcher yes path /a`, each beginning with the line number in the configuration. */
function traceLines(steps: readonly ExplainedStep[]): string[] {
	return steps.map(step => {
		const at = `${step.place.line} ${step.kind}`;
		if (step.kind === 'matcher') return `${at} ${step.holds} ${step.matcher}`;
		if (step.kind === 'failure') return `${at} ${step.status}`;
		const { rewrite } = step;
		return rewrite ? `${at} ${step.handler} ${rewrite.before.target} ${rewrite.after.target}` : `${at} ${step.handler}`;
	});
}

const trace = suite('explanations');

trace('a rewrite is attributed to the handler that made it, not to enclosing ones', async () => {
	const { steps, answer } = await explainRequest(
		':8080 {\nroute {\nrewrite /a /b\nuri strip_prefix /x\n}\nrespond "{path}"\n}\n',
		'http://x:8080/a',
	);
	assert.equal(traceLines(steps), [
		'2 handler group',
		'3 matcher true path /a',
		'3 handler rewrite_target /a /b',
		'4 handler rewrite_target',
		'6 handler respond',
	]);
	assert.is(answer!.place!.line, 6);
});

trace('only evaluated matchers are listed', async () => {
	const { steps } = await explainRequest(':8080 {\n@m path /a and method POST\nrespond @m "x"\n}\n', 'http://x:8080/b');
	const [only] = steps;
	assert.is(steps.length, 1);
	assert.equal(only!.kind === 'matcher' && only!.parts!.map(({ matcher, holds }) => `${matcher} ${holds}`), [
		'path /a false',
	]);
});

trace('error routes see the original request, and restoring it is not shown as a rewrite', async () => {
	const { steps, answer } = await explainRequest(
		':8080 {\nrewrite /b\nerror 404\nhandle_errors {\nrespond "{path}"\n}\n}\n',
		'http://x:8080/a',
	);
	assert.equal(traceLines(steps), [
		'2 handler rewrite_target /a /b',
		'3 handler fail',
		'3 failure 404',
		'5 handler respond',
	]);
	assert.is(answer!.status, 404);
	assert.is(answer!.handler, 'respond');
});

trace('a request that a matcher cannot parse fails at the matcher', async () => {
	const { steps, answer } = await explainRequest(':8080 {\nrespond /a "x"\n}\n', 'http://x:8080/%00');
	assert.equal(traceLines(steps), ['2 matcher null path /a', '2 failure 400']);
	assert.is(answer!.status, 400);
	assert.ok(answer!.error);
});

trace('of nested responses, the innermost is the final one', async () => {
	const { answer } = await explainRequest(
		':8080 {\nheader X-A 1\nroute {\nhandle {\nrespond "x"\n}\n}\nrespond "y"\n}\n',
		'http://x:8080/',
	);
	assert.is(answer!.place!.line, 5);
});

trace('an interim response is not a final response', async () => {
	const { answer } = await explainRequest(':8080 {\nrespond 103\nrespond "x"\n}\n', 'http://x:8080/');
	assert.is(answer!.place!.line, 3);
});

trace('credentials are redacted', async () => {
	const text =
		':8080 {\n@m header Authorization "Bearer abc"\nheader Set-Cookie "id=secret"\nrespond @m "x"\nreverse_proxy a:1 {\nheader_up X-Api-Token topsecret\n}\n}\n';
	const explanation = await explainRequest(text, 'http://x:8080/');
	assert.not(/secret|abc/.test(JSON.stringify(explanation)));
	const { steps } = explanation;
	assert.ok(steps.some(({ place }) => place.text === 'header Set-Cookie "[redacted]"'));
	assert.ok(steps.some(step => step.kind === 'matcher' && step.matcher === 'header Authorization [redacted]'));
});

trace('control characters in a request do not reach the terminal', async () => {
	const explanation = await explainRequest(':8080 {\nrewrite /\u001b[31m\nrespond "x"\n}\n', 'http://x:8080/a');
	assert.not(renderExplanation(explanation).includes('\u001b'));
});

trace.run();

const texts = suite('matcher descriptions');

for (const [matcher, expected] of [
	[{ type: 'path', patterns: ['/a', '/b c'] }, 'path /a "/b c"'],
	[{ type: 'header', name: 'X', present: true }, 'header X *'],
	[{ type: 'header', name: 'X', absent: true }, 'header !X'],
	[{ type: 'not', of: { type: 'method', methods: ['GET'] } }, 'not method GET'],
	[{ type: 'all', of: [] }, 'always'],
	[{ type: 'any', of: [] }, 'never'],
	[
		{
			type: 'all',
			of: [
				{ type: 'any', of: [{ type: 'a' }, { type: 'b' }] },
				{ type: 'not', of: { type: 'all', of: [{ type: 'c' }, { type: 'd' }] } },
			],
		},
		'( a or b ) and not ( c and d )',
	],
] as readonly (readonly [Matcher, string])[]) {
	texts(expected, () => assert.is(matcherText(matcher), expected));
}

texts.run();
