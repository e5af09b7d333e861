/** What `svc rollout status` and `GET /rollout` say about the machines of a rollout. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createRollout, LOST_AFTER_MS } from '../../../runtime/cluster/rollout-decision.ts';
import { summarizeRollout } from '../../../runtime/cluster/rollout-summary.ts';
import { type FleetReport, NO_REVISION } from '../../../runtime/cluster/shared-rollout.ts';

const summaries = suite('summary of a rollout');

summaries('a machine that no longer reports is not said to share its ID with another server', () => {
	const now = 1_000_000;
	const terms = { shares: [1], observationMs: 0, loadLimitMs: 60_000, maxErrorRateRise: 0.05 };
	const other = { host: 'copy', pid: 7 };
	const report: FleetReport = {
		machine: 'a',
		serves: 1,
		isReady: true,
		traffic: { responses: 0, serverErrors: 0, errorRateBefore: 0 },
		host: 'a',
		pid: 1,
		process: 'token',
		version: 'test',
		sameIdAs: other,
		reportedAt: now,
	};
	const summaryAt = (time: number) =>
		summarizeRollout({ rollout: createRollout(2, 1, terms, now), reports: [report], revision: NO_REVISION, now: time })
			?.machines[0];
	assert.equal(summaryAt(now + LOST_AFTER_MS)?.same_id_as, other);
	const lost = summaryAt(now + LOST_AFTER_MS + 1);
	assert.is(lost?.lost, true);
	assert.is(lost?.same_id_as, undefined);
});

summaries.run();
