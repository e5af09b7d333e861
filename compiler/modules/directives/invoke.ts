/** `invoke`: runs a named route. */
import type { Step } from '../../document/document.ts';
import { handlerDirective } from '../contract/directive.ts';

interface RunRouteStep extends Step {
	readonly handler: 'run_route';
	readonly route: string;
}

const USAGE = 'invoke [matcher] <name>';

/** Syntax: `invoke [matcher] <name>`. */
export const invoke = handlerDirective<RunRouteStep>({
	kind: 'handler',
	id: 'run_route',
	observedFields: 'all',
	names: { configfile: ['invoke'], compatfile: ['invoke'] },
	usage: USAGE,
	summary: 'Runs a named route.',
	documentation: [
		'A named route is a top-level block `&(name) { … }` that sites share; it is compiled once for each site that runs',
		'it. The request continues after `invoke` unless a directive of the route answered it. A named route sees only its own',
		'matchers. Routes that invoke each other endlessly cause an error 500.',
		'',
		'```',
		':8080 {',
		'	invoke app',
		'}',
		'&(app) {',
		'	respond "from the route"',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'sometimes',
	changesTarget: true,
	readsRoot: () => true,
	routeOf: ({ route }) => route,
	order: { rank: 260 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, USAGE)) return undefined;
		const name = args[0]!;
		cx.useRoute(name);
		return cx.origin<RunRouteStep>({ handler: 'run_route', route: name.text }, line.span, { route: name.span });
	},
	schema: {
		properties: { route: { type: 'string', description: 'Key of `routes`.' } },
		required: ['route'],
	},
	compile: (step, cx, next) => {
		const runRoute = cx.route(step.route);
		return x => runRoute(x, next);
	},
});
