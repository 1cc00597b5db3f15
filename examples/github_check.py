"""Write the answer of `farm compare --gate` as a check on a commit, by GitHub's API.

    python github_check.py EXIT_CODE SUMMARY.md

Needs GITHUB_TOKEN (with `checks: write`), GITHUB_REPOSITORY and HEAD_SHA; GITHUB_API_URL is where the API is.
"""

import os
import sys
from pathlib import Path

import httpx

#: GitHub lets a pull request with a `neutral` check pass, so what is not shown to be quick enough is none.
CONCLUSIONS = {
    0: ("success", "Not slower"),
    2: ("action_required", "The request was refused or cancelled"),
    3: ("failure", "The model or the harness failed"),
    4: ("action_required", "A device gave no answer"),
    5: ("action_required", "A host of the farm has a fault"),
    6: ("action_required", "The farm has a fault"),
    7: ("failure", "Slower"),
    8: ("action_required", "Undecided"),
    9: ("action_required", "Nothing was measured"),
    10: ("action_required", "The farm cannot be reached"),
}
#: Longer summaries are refused by GitHub.
LONGEST = 65_000


def main(code: int, summary: Path) -> None:
    """Write the check, or end with the reason that GitHub gives."""
    conclusion, title = CONCLUSIONS.get(code, ("failure", f"`farm` ended with {code}"))
    text = summary.read_text(encoding="utf-8") if summary.exists() else "The log of the job has the reason."
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    try:
        response = _post(api, conclusion, title, text)
    except httpx.HTTPError as error:
        sys.exit(f"GitHub cannot be reached at {api}: {error}\nhint: `gate.md` has the answer of the farm")
    # A redirect is not followed, so it has written nothing either.
    if not response.is_success:
        sys.exit(
            f"GitHub refuses the check with {response.status_code}: {response.text[:500]}\n"
            "hint: the workflow needs `permissions: {checks: write}`, and GITHUB_API_URL must be GitHub's own"
        )
    sys.stdout.write(f"check `benchfarm` on {os.environ['HEAD_SHA']}: {conclusion}, {title}\n")


def _post(api: str, conclusion: str, title: str, text: str) -> httpx.Response:
    return httpx.post(
        f"{api}/repos/{os.environ['GITHUB_REPOSITORY']}/check-runs",
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
        json={
            "name": "benchfarm",
            "head_sha": os.environ["HEAD_SHA"],
            "status": "completed",
            "conclusion": conclusion,
            "output": {"title": title, "summary": text[:LONGEST]},
        },
        timeout=30,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
