"""The discovery and the client of a chapter on the task REST dialect, printed there so; only the imports are ours."""

# ruff: noqa
# fmt: off

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from typing import Dict, Optional

import aiohttp

logger = logging.getLogger(__name__)


class AgentDiscovery:
    """A2A Agent 发现服务"""

    WELL_KNOWN_PATH = "/.well-known/agent.json"

    def __init__(self):
        self._cache: Dict[str, Dict] = {}

    async def discover(self, agent_url: str) -> Optional[Dict]:
        """
        从指定 URL 发现 Agent 的能力

        Args:
            agent_url: Agent 的基础 URL（如 https://legal-agent.example.com）

        Returns:
            Agent Card 字典，或 None（如果无法发现）
        """
        if agent_url in self._cache:
            return self._cache[agent_url]

        card_url = agent_url.rstrip("/") + self.WELL_KNOWN_PATH

        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(card_url, timeout=aiohttp.ClientTimeout(total=10)) as resp:
                    if resp.status == 200:
                        card = await resp.json()
                        self._cache[agent_url] = card
                        return card
            except Exception as e:
                print(f"无法发现 Agent: {agent_url}: {e}")

        return None

    def can_handle(self, agent_card: Dict, task_description: str) -> float:
        """
        评估 Agent 处理特定任务的能力（0.0-1.0）

        简单实现：基于关键词匹配
        生产实现：使用向量相似度或 LLM 评估
        """
        description = task_description.lower()
        score = 0.0

        for skill in agent_card.get("skills", []):
            skill_tags = skill.get("tags", [])
            skill_desc = skill.get("description", "").lower()
            skill_name = skill.get("name", "").lower()

            # 标签匹配
            for tag in skill_tags:
                if tag.lower() in description:
                    score += 0.3

            # 描述关键词匹配
            words = description.split()
            for word in words:
                if word in skill_desc or word in skill_name:
                    score += 0.1

        return min(score, 1.0)


class A2AClient:
    """Hermes A2A 客户端"""

    def __init__(self, agent_url: str, auth_token: str):
        self.agent_url = agent_url.rstrip("/")
        self.auth_token = auth_token

    @property
    def headers(self) -> Dict:
        return {
            "Authorization": f"Bearer {self.auth_token}",
            "Content-Type": "application/json"
        }

    async def create_task(
        self,
        text: str,
        files: list = None,
        session_id: str = None,
        callback_url: str = None
    ) -> Dict:
        """创建 A2A 任务"""
        parts = [{"type": "text", "text": text}]

        if files:
            for f in files:
                parts.append({"type": "file", "file": f})

        payload = {
            "message": {"role": "user", "parts": parts}
        }
        if session_id:
            payload["sessionId"] = session_id
        if callback_url:
            payload["metadata"] = {"callback_url": callback_url}

        async with aiohttp.ClientSession(headers=self.headers) as session:
            async with session.post(
                f"{self.agent_url}/tasks",
                json=payload
            ) as resp:
                resp.raise_for_status()
                return await resp.json()

    async def wait_for_completion(
        self,
        task_id: str,
        poll_interval: float = 2.0,
        timeout: float = 300.0
    ) -> Dict:
        """
        轮询等待任务完成

        对于支持流式的 Agent，建议使用 stream_task_progress()
        """
        import time
        start = time.time()

        while time.time() - start < timeout:
            task = await self.get_task(task_id)
            state = task["status"]["state"]

            if state == "completed":
                # 获取产物
                artifacts = await self.get_artifacts(task_id)
                task["artifacts"] = artifacts
                return task

            elif state == "failed":
                raise A2ATaskError(
                    f"任务失败: {task_id}",
                    task.get("status", {}).get("message", "Unknown error")
                )

            elif state == "canceled":
                raise A2ATaskError(f"任务被取消: {task_id}")

            # 还在执行中，等待后重试
            progress = task["status"].get("progress", 0)
            logger.info(f"任务 {task_id[:8]}... 进度: {progress*100:.0f}%")
            await asyncio.sleep(poll_interval)

        raise TimeoutError(f"任务 {task_id} 超时（>{timeout}s）")

    async def stream_task_progress(
        self,
        task_id: str
    ) -> AsyncGenerator[Dict, None]:
        """通过 SSE 流式获取任务进度"""
        async with aiohttp.ClientSession(headers=self.headers) as session:
            async with session.get(f"{self.agent_url}/tasks/{task_id}/stream") as resp:
                resp.raise_for_status()
                async for line in resp.content:
                    line = line.decode().strip()
                    if line.startswith("data: "):
                        data = json.loads(line[6:])
                        yield data
                        if data.get("type") in ("completed", "failed"):
                            break

    async def get_task(self, task_id: str) -> Dict:
        async with aiohttp.ClientSession(headers=self.headers) as session:
            async with session.get(f"{self.agent_url}/tasks/{task_id}") as resp:
                resp.raise_for_status()
                return await resp.json()

    async def get_artifacts(self, task_id: str) -> list:
        async with aiohttp.ClientSession(headers=self.headers) as session:
            async with session.get(f"{self.agent_url}/tasks/{task_id}/artifacts") as resp:
                resp.raise_for_status()
                return await resp.json()

    async def cancel_task(self, task_id: str):
        async with aiohttp.ClientSession(headers=self.headers) as session:
            async with session.put(f"{self.agent_url}/tasks/{task_id}/cancel") as resp:
                resp.raise_for_status()


class A2ATaskError(Exception):
    def __init__(self, message: str, detail: str = None):
        super().__init__(message)
        self.detail = detail
