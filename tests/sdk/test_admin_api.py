"""The admin listener against its description: requests made up from `openapi.json`, sound and unsound ones."""

import re
import subprocess
import sys
from pathlib import Path

DESCRIPTION = Path(__file__).parents[2] / "crates/gateway/openapi.json"
FUZZER = Path(sys.executable).with_name("schemathesis")
# A stream that goes on until somebody hangs up is no answer that could be waited for.
ENDLESS = "/events"
TOKEN = "sesame"


def test_requests_made_up_from_the_description_find_nothing(launch, primary, measured):
    gateway = launch(
        f"""
        admin_token = "{TOKEN}"
        [providers.primary]
        protocol = "openai"
        base_url = "{primary.url}/v1"
        api_key = "key"
        [[routes]]
        model = "*"
        targets = [{{ provider = "primary" }}]
        """
    )
    # A breaker that there is: names that are made up are nobody's.
    (gateway.folder / "schemathesis.toml").write_text('[parameters]\n"path.name" = "primary"\n')
    fuzzer = [FUZZER, "run", DESCRIPTION, "--url", gateway.admin, "--header", f"Authorization: Bearer {TOKEN}"]
    bounds = ["--exclude-path", ENDLESS, "--max-examples", "15", "--seed", "5"]
    checks = ["--phases", "examples,coverage,fuzzing", "--checks", "all", "--no-color", "--generation-database", "none"]
    run = subprocess.run([*fuzzer, *bounds, *checks], capture_output=True, text=True, timeout=60, cwd=gateway.folder)
    assert run.returncode == 0, run.stdout + run.stderr
    made_up = re.search(r"(\d+) generated, (\d+) passed", run.stdout)
    measured(f"{made_up[1]} requests made up")
    assert int(made_up[2]) >= 30, run.stdout
    log = (gateway.folder / "gateway.log").read_text()
    assert "forced by an operator" in log and "the configuration is reloaded" in log
    assert gateway.get("/readyz") == b"ready"
